#include "harness/comm_hook_choice.h"

#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

constexpr const char* kAllReduce = "allreduce";

/// From the first step on that error feedback allows.
ddp::CommHookPtr early_power_sgd() {
  return ddp::power_sgd_hook(ddp::PowerSGDOptions().start_iteration(2));
}

using Factory = std::function<ddp::CommHookPtr()>;

const std::vector<std::pair<std::string, Factory>>& factories() {
  static const std::vector<std::pair<std::string, Factory>> all{
      {kAllReduce, [] { return ddp::all_reduce_hook(); }},
      {"fp16_compress", [] { return ddp::fp16_compress_hook(); }},
      {"bf16_compress", [] { return ddp::bf16_compress_hook(); }},
      {"power_sgd", early_power_sgd},
      {"top_k", [] { return ddp::top_k_hook(); }},
      {"fp16_compress+power_sgd",
       [] { return ddp::fp16_compress_hook(early_power_sgd()); }},
      {"noop", [] { return ddp::noop_hook(); }}};
  return all;
}

} // namespace

std::vector<std::string> comm_hook_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : factories()) {
    names.push_back(name);
  }
  return names;
}

ddp::CommHookPtr make_comm_hook(const std::string& name) {
  for (const auto& [known, make] : factories()) {
    if (known == name) {
      return make();
    }
  }
  throw ConfigError(fmt::format(
      "--hook: expected one of {}, got '{}'",
      fmt::join(comm_hook_names(), ", "),
      name));
}

bool is_exact(const std::string& hook) {
  return hook.empty() || hook == kAllReduce;
}

} // namespace tandem::bench
