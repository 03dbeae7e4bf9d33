#include "hooks.h"

#include <algorithm>
#include <cstring>

#include <tandem/core/errors.h>

#include "allocators.h"
#include "block.h"
#include "generator.h"
#include "runtime.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

/// For hazard mode: the old bytes are read and the new ones written.
void note_resize(const c10::Storage& storage, UseKind kind) {
  if (auto* const hazards = active_hazards()) {
    BlockUses uses;
    append_use(uses, storage, kind);
    hazards->add_work(
        current_stream_of(storage.device().index()),
        "aten::resize_",
        uses);
  }
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return is_initialized();
  }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override {
    return is_initialized();
  }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    Runtime::get().device(index);
    set_current_device(index);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto previous = current_device();
    setCurrentDevice(index);
    return previous;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(
      c10::DeviceIndex index) const override {
    return Runtime::get().device(index_or_current(index)).generator;
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return make_generator(index_or_current(index));
  }

  c10::Allocator* getPinnedMemoryAllocator() const override {
    return &pinned_allocator();
  }
  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }
  at::Device getDeviceFromPtr(void* /*data*/) const override {
    throw ConfigError(
        "from_blob: expected a device with its index, such as sim:0, got none, "
        "and addresses of simulated devices do not tell");
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t num_bytes)
      const override {
    const auto device = storage.device();
    auto& memory = Runtime::get().device(device.index()).memory;
    auto block = allocate_block(&memory, num_bytes, device);
    note_resize(storage, UseKind::kRead);
    const auto kept = std::min(num_bytes, storage.nbytes());
    if (kept > 0) {
      std::memcpy(block.get(), storage.data(), kept);
    }
    auto* const impl = storage.unsafeGetStorageImpl();
    impl->set_data_ptr_noswap(std::move(block));
    impl->set_nbytes(num_bytes);
    note_resize(storage, UseKind::kWrite);
  }

 private:
  static int8_t index_or_current(c10::DeviceIndex index) {
    return index < 0 ? current_device() : index;
  }
};

} // namespace

at::PrivateUse1HooksInterface* make_hooks() {
  return new Hooks;
}

} // namespace tandem::sim
