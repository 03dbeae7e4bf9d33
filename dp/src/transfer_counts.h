#pragma once

#include <atomic>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tandem::detail {

/// What went to and came from replicas 1, 2, ...; shared by the engine and the
/// nodes of its graphs, which may outlive it. **Threads**: safe.
struct TransferCounts {
  std::atomic<int64_t> copies{0};
  std::atomic<int64_t> bytes{0};
  /// Buckets of gradients that backward has brought: a backward has run if this
  /// has grown.
  std::atomic<int64_t> gradient_buckets{0};

  void add(const at::Tensor& copied) {
    ++copies;
    bytes += static_cast<int64_t>(copied.nbytes());
  }
};

} // namespace tandem::detail
