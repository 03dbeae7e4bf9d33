#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tandem::sim {

/// Keeps freed host memory for the next block of about that size, as CUDA's
/// allocator does. Without it threads that allocate at once would wait for each
/// other in the kernel: the C++ library gets large blocks from it, and gives
/// them back, one by one.
/// **Threads**: any.
class BlockCache {
 public:
  BlockCache() = default;
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// The one that blocks come from; lives until the process has ended.
  static BlockCache& get();

  /// Aligned as LibTorch's CPU memory is. **Throws** `c10::Error` if the host
  /// has no more.
  void* allocate(size_t num_bytes);
  /// `num_bytes`: what `memory` was allocated with.
  void free(void* memory, size_t num_bytes);

  /// Gives all that is kept back to the host.
  void clear();
  size_t kept_bytes() const;

 private:
  /// Null if nothing of that size is kept.
  void* take(size_t rounded_bytes);

  mutable std::mutex mutex_;
  /// By size, last freed last.
  std::unordered_map<size_t, std::vector<void*>> kept_;
};

} // namespace tandem::sim
