#include "multiprocessors.h"

#include <cuda_runtime_api.h>

namespace tandem::detail {

std::optional<int64_t> num_multiprocessors(at::Device device) {
  int count = 0;
  if (!device.is_cuda() ||
      cudaDeviceGetAttribute(
          &count,
          cudaDevAttrMultiProcessorCount,
          device.index()) != cudaSuccess) {
    return std::nullopt;
  }
  return count;
}

} // namespace tandem::detail
