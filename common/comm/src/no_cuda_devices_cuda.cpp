#include "cuda_devices.h"

#include <c10/util/Exception.h>

namespace tandem::comm {

int64_t num_cuda_devices() {
  return 0;
}

void set_cuda_device(int64_t /*index*/) {
  TORCH_INTERNAL_ASSERT(false, "this build has no CUDA");
}

} // namespace tandem::comm
