#include "placement/refresh_policy_names.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

const std::vector<std::pair<std::string, RefreshPolicy>>& policies_by_name() {
  static const std::vector<std::pair<std::string, RefreshPolicy>> names{
      {"checked", RefreshPolicy::kChecked},
      {"always", RefreshPolicy::kAlways},
      {"versions", RefreshPolicy::kVersions},
      {"manual", RefreshPolicy::kManual}};
  return names;
}

} // namespace

std::vector<std::string> refresh_policy_names() {
  std::vector<std::string> names;
  names.reserve(policies_by_name().size());
  for (const auto& entry : policies_by_name()) {
    names.push_back(entry.first);
  }
  return names;
}

RefreshPolicy refresh_policy_from_name(const std::string& name) {
  for (const auto& [known, policy] : policies_by_name()) {
    if (known == name) {
      return policy;
    }
  }
  throw ConfigError(fmt::format(
      "--refresh-policy: expected one of {}, got '{}'",
      fmt::join(refresh_policy_names(), ", "),
      name));
}

} // namespace tandem::bench
