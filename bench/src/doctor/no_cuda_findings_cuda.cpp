#include "doctor/finding.h"

namespace tandem::bench {

std::vector<Finding> cuda_findings() {
  const bool has_driver = std::filesystem::exists("/dev/nvidiactl") ||
      std::filesystem::exists("/dev/dxg");
  return {
      {Verdict::kAbsent,
       "CUDA",
       has_driver ? "not built in, though a GPU's driver is there"
                  : "not built in, and no GPU's driver is there",
       has_driver ? "install the CUDA toolkit of LibTorch's version, then "
                    "scripts/build.sh"
                  : "none needed: everything runs on the CPU"}};
}

} // namespace tandem::bench
