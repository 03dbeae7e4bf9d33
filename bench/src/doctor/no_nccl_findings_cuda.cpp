#include "doctor/finding.h"

namespace tandem::bench {

std::vector<Finding> nccl_findings() {
  return {
      {Verdict::kAbsent,
       "NCCL",
       "not built in",
       "needed only for several GPUs: build with CUDA, and with nccl.h beside "
       "LibTorch's libnccl"}};
}

} // namespace tandem::bench
