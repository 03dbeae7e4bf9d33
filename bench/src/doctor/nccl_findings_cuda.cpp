#include "doctor/finding.h"

#include <fmt/format.h>
#include <torch/csrc/cuda/nccl.h>

namespace tandem::bench {

namespace {

// LibTorch packs major, minor and patch into 32, 16 and 16 bits.
std::string loaded_nccl_version() {
  const auto packed = torch::cuda::nccl::version();
  return fmt::format(
      "{}.{}.{}",
      packed >> 32,
      packed >> 16 & 0xffff,
      packed & 0xffff);
}

} // namespace

std::vector<Finding> nccl_findings() {
  const std::string header = TANDEM_NCCL_HEADER_VERSION;
  const auto library = loaded_nccl_version();
  const auto found =
      fmt::format("built with {}, library {} loaded", header, library);
  if (header == library) {
    return {{Verdict::kOk, "NCCL", found}};
  }
  return {
      {Verdict::kBroken,
       "NCCL",
       found,
       "run with the libnccl that was built with: look at LD_LIBRARY_PATH and "
       "LD_PRELOAD, or build again"}};
}

} // namespace tandem::bench
