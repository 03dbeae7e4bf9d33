#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::bench {

enum class Verdict {
  kOk,
  /// Something is not there that Tandem can do without.
  kAbsent,
  /// Something essential does not work.
  kBroken,
};

/// One line of `tandem doctor`.
struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;
  std::string found;
  /// What to do about it; empty where nothing need be done.
  std::string remedy = "";
};

/// Tandem and LibTorch, cores and threads, memory.
std::vector<Finding> host_findings();
/// CUDA's runtime, driver and devices; from a twin in a build without CUDA.
std::vector<Finding> cuda_findings();
/// NCCL's header and library; from a twin in a build without NCCL.
std::vector<Finding> nccl_findings();
/// The simulated devices of `--device sim`.
Finding sim_finding();
/// The data set that `tandem train` reads, from `data_dir` if not empty.
Finding data_finding(const std::filesystem::path& data_dir);
/// The rendezvous variables, the CPU's backend and the loopback interface.
std::vector<Finding> comm_findings();

} // namespace tandem::bench
