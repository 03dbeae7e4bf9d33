#pragma once

#include <string>
#include <vector>

#include <tandem/ddp/comm_hooks.h>

namespace tandem::bench {

/// "allreduce", "fp16_compress", "bf16_compress", "power_sgd", "top_k",
/// "fp16_compress+power_sgd", "noop": what `--hook` may say.
std::vector<std::string> comm_hook_names();

/// The hook with that name and default options, but for those that would have
/// it begin after the benchmark's end.
/// **Throws** `ConfigError` naming them all.
ddp::CommHookPtr make_comm_hook(const std::string& name);

/// Gradients with the hook are the mean, as without any.
bool is_exact(const std::string& hook);

} // namespace tandem::bench
