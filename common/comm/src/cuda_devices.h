#pragma once

#include <cstdint>

namespace tandem::comm {

/// CUDA devices that this process sees; 0 without CUDA, a driver or a device.
int64_t num_cuda_devices();

/// Makes CUDA device `index` the calling thread's current one.
void set_cuda_device(int64_t index);

} // namespace tandem::comm
