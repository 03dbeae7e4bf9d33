#include "block_cache.h"

#include <bit>

#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

namespace tandem::sim {

namespace {

// Smaller ones the C++ library keeps by itself.
constexpr size_t kSmallestKept = size_t{64} << 10;

#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeepsNothing = true; // to see what is used after it was freed
#else
constexpr bool kKeepsNothing = false;
#endif

bool is_kept(size_t num_bytes) {
  return !kKeepsNothing && num_bytes >= kSmallestKept;
}

/// Up to an eighth more, so that a size serves its neighbours too.
size_t round_up(size_t num_bytes) {
  const size_t step = std::bit_floor(num_bytes) / 8;
  return (num_bytes + step - 1) / step * step;
}

} // namespace

BlockCache::~BlockCache() {
  clear();
}

BlockCache& BlockCache::get() {
  static auto* const cache = new BlockCache;
  return *cache;
}

void* BlockCache::allocate(size_t num_bytes) {
  if (!is_kept(num_bytes)) {
    return c10::alloc_cpu(num_bytes);
  }
  const auto rounded_bytes = round_up(num_bytes);
  if (void* const memory = take(rounded_bytes)) {
    return memory;
  }
  try {
    return c10::alloc_cpu(rounded_bytes);
  } catch (const c10::Error&) {
    clear();
  }
  return c10::alloc_cpu(rounded_bytes);
}

void BlockCache::free(void* memory, size_t num_bytes) {
  if (!is_kept(num_bytes)) {
    c10::free_cpu(memory);
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_[round_up(num_bytes)].push_back(memory);
}

void BlockCache::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [rounded_bytes, blocks] : kept_) {
    for (void* const memory : blocks) {
      c10::free_cpu(memory);
    }
  }
  kept_.clear();
}

size_t BlockCache::kept_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t sum = 0;
  for (const auto& [rounded_bytes, blocks] : kept_) {
    sum += rounded_bytes * blocks.size();
  }
  return sum;
}

void* BlockCache::take(size_t rounded_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = kept_.find(rounded_bytes);
  if (found == kept_.end() || found->second.empty()) {
    return nullptr;
  }
  void* const memory = found->second.back();
  found->second.pop_back();
  return memory;
}

} // namespace tandem::sim
