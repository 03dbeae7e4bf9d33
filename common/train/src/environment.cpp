#include <tandem/train/environment.h>

#include <fstream>
#include <sstream>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sched.h>
#include <torch/version.h>

#include <tandem/core/errors.h>

namespace tandem::train {

namespace {

constexpr const char* kStatusFile = "/proc/self/status";

// What follows "<key>:" in the first such line of a /proc file.
std::optional<std::string> proc_value(
    const std::string& path,
    const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) {
      continue;
    }
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return std::nullopt;
}

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    return at::get_num_threads();
  }
  return CPU_COUNT(&set);
}

} // namespace

Environment current_environment() {
  Environment environment;
  environment.tandem = TANDEM_VERSION;
  environment.torch = TORCH_VERSION;
  environment.cpu = proc_value("/proc/cpuinfo", "model name").value_or("");
  environment.cores = usable_cores();
  environment.threads_per_worker = at::get_num_threads();
  return environment;
}

int64_t peak_resident_bytes() {
  const auto value = proc_value(kStatusFile, "VmHWM");
  int64_t kibibytes = 0;
  if (!value || !(std::istringstream(*value) >> kibibytes)) {
    throw Error(fmt::format(
        "{}: VmHWM: expected a number of kB, got '{}'",
        kStatusFile,
        value.value_or("no such line")));
  }
  return kibibytes * 1024;
}

void reset_peak_resident_bytes() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

} // namespace tandem::train
