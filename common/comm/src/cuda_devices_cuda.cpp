#include "cuda_devices.h"

#include <c10/cuda/CUDAFunctions.h>

namespace tandem::comm {

int64_t num_cuda_devices() {
  return c10::cuda::device_count();
}

void set_cuda_device(int64_t index) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
}

} // namespace tandem::comm
