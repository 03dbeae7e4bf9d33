#include "block.h"

#include "block_cache.h"
#include "device_memory.h"
#include "hazards.h"
#include "runtime.h"
#include "thread_devices.h"
#include "use_log.h"

namespace tandem::sim {

namespace {

// As large as the alignment that kernels expect of what follows it.
struct alignas(64) BlockHeader {
  DeviceMemory* owner;
  int64_t num_bytes;
  /// Null outside hazard mode.
  UseLog* log;
};

BlockHeader* header_of(void* data) {
  return static_cast<BlockHeader*>(data) - 1;
}

/// Null if `pointer` is not to one of our blocks.
BlockHeader* find_header(const c10::DataPtr& pointer) {
  const bool ours =
      pointer.get_deleter() == &free_block && pointer.get() != nullptr;
  return ours ? header_of(pointer.get()) : nullptr;
}

std::unique_ptr<UseLog> make_log(const DeviceMemory* owner, size_t num_bytes) {
  auto* const hazards = active_hazards();
  return owner == nullptr || hazards == nullptr
      ? nullptr
      : hazards->allocate(
            current_stream_of(static_cast<int8_t>(owner->device_index())),
            num_bytes);
}

} // namespace

c10::DataPtr allocate_block(
    DeviceMemory* owner,
    size_t num_bytes,
    at::Device device) {
  if (num_bytes == 0) {
    return {nullptr, nullptr, &free_block, device};
  }
  auto log = make_log(owner, num_bytes);
  if (owner != nullptr) {
    owner->reserve(static_cast<int64_t>(num_bytes));
  }
  void* memory = nullptr;
  try {
    memory = BlockCache::get().allocate(num_bytes + sizeof(BlockHeader));
  } catch (...) {
    if (owner != nullptr) {
      owner->release(static_cast<int64_t>(num_bytes));
    }
    throw;
  }
  auto* header = new (memory)
      BlockHeader{owner, static_cast<int64_t>(num_bytes), log.release()};
  return {header + 1, header + 1, &free_block, device};
}

void free_block(void* data) {
  if (data == nullptr) {
    return;
  }
  auto* header = header_of(data);
  if (header->log != nullptr) {
    active_hazards()->free(std::unique_ptr<UseLog>(header->log));
  }
  if (header->owner != nullptr) {
    header->owner->release(header->num_bytes);
  }
  BlockCache::get().free(
      header,
      static_cast<size_t>(header->num_bytes) + sizeof(BlockHeader));
}

DeviceMemory* owner_of(const c10::DataPtr& pointer) {
  const auto* const header = find_header(pointer);
  return header == nullptr ? nullptr : header->owner;
}

UseLog* use_log_of(const c10::DataPtr& pointer) {
  const auto* const header = find_header(pointer);
  return header == nullptr ? nullptr : header->log;
}

c10::DataPtr relabel(c10::DataPtr pointer, at::Device device) {
  void* const data = pointer.get();
  const auto deleter = pointer.get_deleter();
  return {data, pointer.release_context(), deleter, device};
}

} // namespace tandem::sim
