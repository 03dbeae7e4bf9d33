#include "doctor/finding.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace tandem::bench {

namespace {

// CUDA counts 12040 for 12.4.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

Finding device_finding(int index) {
  const auto subject = fmt::format("cuda:{}", index);
  cudaDeviceProp properties{};
  const auto error = cudaGetDeviceProperties(&properties, index);
  if (error != cudaSuccess) {
    return {
        Verdict::kBroken,
        subject,
        cudaGetErrorString(error),
        "look at nvidia-smi, or hide the device with CUDA_VISIBLE_DEVICES"};
  }
  constexpr double bytes_per_gib = 1 << 30;
  return {
      Verdict::kOk,
      subject,
      fmt::format(
          "{}, compute capability {}.{}, {:.1f} GiB",
          properties.name,
          properties.major,
          properties.minor,
          static_cast<double>(properties.totalGlobalMem) / bytes_per_gib)};
}

} // namespace

std::vector<Finding> cuda_findings() {
  int runtime = 0;
  int driver = 0;
  int num_devices = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  const auto error = cudaGetDeviceCount(&num_devices);
  const auto versions = fmt::format(
      "runtime {}, driver {}",
      cuda_version(runtime),
      driver == 0 ? "none" : "for " + cuda_version(driver));
  if (driver == 0) {
    return {
        {Verdict::kAbsent,
         "CUDA",
         versions,
         "needed only for GPUs: install NVIDIA's driver"}};
  }
  if (error != cudaSuccess || num_devices == 0) {
    return {
        {Verdict::kAbsent,
         "CUDA",
         fmt::format("{}: {}", versions, cudaGetErrorString(error)),
         "look at nvidia-smi and CUDA_VISIBLE_DEVICES"}};
  }
  std::vector<Finding> findings{
      {Verdict::kOk,
       "CUDA",
       fmt::format("{}, {} device(s)", versions, num_devices)}};
  for (int index = 0; index < num_devices; ++index) {
    findings.push_back(device_finding(index));
  }
  return findings;
}

} // namespace tandem::bench
