#include "doctor/finding.h"

#include <cstdlib>
#include <fstream>
#include <limits>

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>
#include <torch/version.h>

#include <tandem/train/environment.h>

namespace tandem::bench {

namespace {

// The file that the dynamic linker took for `name`; empty if none.
std::string loaded_library(const char* name) {
  void* const handle = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (handle == nullptr ||
      ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) {
    return "";
  }
  std::string path = map->l_name;
  ::dlclose(handle);
  return path;
}

Finding memory_finding() {
  int64_t total_kib = 0;
  int64_t available_kib = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    if (key == "MemTotal:") {
      file >> total_kib;
    } else if (key == "MemAvailable:") {
      file >> available_kib;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  constexpr double kib_per_gib = 1 << 20;
  return {
      Verdict::kOk,
      "memory",
      fmt::format(
          "{:.1f} GiB, {:.1f} GiB available",
          static_cast<double>(total_kib) / kib_per_gib,
          static_cast<double>(available_kib) / kib_per_gib)};
}

} // namespace

std::vector<Finding> host_findings() {
  const auto environment = train::current_environment();
  const char* const omp = std::getenv("OMP_NUM_THREADS");
  return {
      {Verdict::kOk, "Tandem", environment.tandem},
      {Verdict::kOk,
       "LibTorch",
       fmt::format(
           "{}, {}",
           environment.torch,
           loaded_library("libtorch_cpu.so"))},
      {Verdict::kOk,
       "cores",
       fmt::format("{} usable, {}", environment.cores, environment.cpu)},
      {Verdict::kOk,
       "threads",
       fmt::format(
           "{} intra-op, OMP_NUM_THREADS {}",
           environment.threads_per_worker,
           omp == nullptr ? "not set" : omp)},
      memory_finding()};
}

} // namespace tandem::bench
