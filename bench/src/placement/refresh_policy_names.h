#pragma once

#include <string>
#include <vector>

#include <tandem/dp/data_parallel_options.h>

namespace tandem::bench {

/// The words of `--refresh-policy`.
std::vector<std::string> refresh_policy_names();
/// **Throws** `ConfigError` naming them all.
RefreshPolicy refresh_policy_from_name(const std::string& name);

} // namespace tandem::bench
