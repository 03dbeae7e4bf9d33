#include <tandem/wrap.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem {

std::string strategy_name(Strategy strategy) {
  switch (strategy) {
    case Strategy::kDP:
      return "dp";
    case Strategy::kDDP:
      return "ddp";
    case Strategy::kSingle:
      break;
  }
  return "single";
}

Strategy strategy_from_name(const std::string& name) {
  for (const auto strategy :
       {Strategy::kSingle, Strategy::kDP, Strategy::kDDP}) {
    if (strategy_name(strategy) == name) {
      return strategy;
    }
  }
  throw ConfigError(
      fmt::format("strategy: expected single, dp or ddp, got '{}'", name));
}

} // namespace tandem
