#include "doctor/finding.h"

#include <tandem/core/errors.h>
#include <tandem/train/fashion_mnist.h>

namespace tandem::bench {

Finding data_finding(const std::filesystem::path& data_dir) {
  const std::string subject = "data set";
  try {
    return {
        Verdict::kOk,
        subject,
        "Fashion-MNIST in " + train::find_fashion_mnist(data_dir).string()};
  } catch (const ConfigError& error) {
    return {
        Verdict::kAbsent,
        subject,
        error.what_without_backtrace(),
        "run scripts/setup.sh, or train with --data synthetic"};
  }
}

} // namespace tandem::bench
