#include "doctor/finding.h"

#include <tandem/core/errors.h>
#include <tandem/train/fashion_mnist.h>

namespace tandem::bench {

Finding data_finding(const std::filesystem::path& data_dir) {
  constexpr auto kSubject = "data set";
  try {
    return {
        Verdict::kOk,
        kSubject,
        "Fashion-MNIST in " + train::find_fashion_mnist(data_dir).string()};
  } catch (const ConfigError& error) {
    return {
        Verdict::kAbsent,
        kSubject,
        error.what_without_backtrace(),
        "run scripts/setup.sh, or train with --data synthetic"};
  }
}

} // namespace tandem::bench
