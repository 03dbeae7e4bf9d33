#include "allocators.h"

#include <limits>

#include "block.h"
#include "block_cache.h"
#include "runtime.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

class SimAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    const auto index = current_device();
    return allocate_block(
        &Runtime::get().device(index).memory,
        num_bytes,
        at::Device(at::kPrivateUse1, index));
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }
  void copy_data(void* destination, const void* source, size_t num_bytes)
      const override {
    default_copy_data(destination, source, num_bytes);
  }

  bool initialized() override {
    return is_initialized();
  }
  void emptyCache(c10::MempoolId_t /*pool*/) override {
    BlockCache::get().clear();
  }
  void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
    if (auto* const log = use_log_of(pointer)) {
      active_hazards()->record_stream(*log, stream);
    }
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex index) override {
    return Runtime::get().device(index).memory.device_stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    Runtime::get().device(index).memory.reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    Runtime::get().device(index).memory.reset_peak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const auto memory = Runtime::get().device(index).memory.statistics();
    const auto total = memory.capacity_bytes == 0
        ? std::numeric_limits<int64_t>::max()
        : memory.capacity_bytes;
    return {total - memory.current_bytes, total};
  }
};

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    return allocate_block(counted_memory(), num_bytes, at::kCPU);
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }
  void copy_data(void* destination, const void* source, size_t num_bytes)
      const override {
    default_copy_data(destination, source, num_bytes);
  }
};

} // namespace

// LibTorch keeps pointers to them until the process has ended.
c10::DeviceAllocator& device_allocator() {
  static auto* const allocator = new SimAllocator;
  return *allocator;
}

c10::Allocator& host_allocator() {
  static auto* const allocator = new HostAllocator;
  return *allocator;
}

} // namespace tandem::sim
