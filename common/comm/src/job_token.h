#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/comm/env_reader.h>

namespace tandem::comm {

/// Note [Job token]
/// Two jobs that were given the same MASTER_ADDR and MASTER_PORT by mistake
/// would meet in one store, and count each other's ranks as their own. So every
/// rank says right after connecting, before it joins anything, which job it
/// belongs to. The token identifies and does not authenticate: whoever can
/// reach the store can read it.
struct JobToken {
  /// The variable that it was looked for in: TANDEM_JOB_ID, or
  /// TORCHELASTIC_RUN_ID if only that is set.
  std::string variable;
  std::optional<std::string> value;
};

/// **Throws** `ConfigError` if the value is empty or has spaces.
JobToken read_job_token(const EnvLookup& lookup);

/// Compares the token with rank 0's, who leaves its own in `store`.
/// **Throws** `ConfigError` naming the variable and both values if they differ,
/// `TimeoutError` if rank 0 does not say within `limit`.
void check_same_job(
    c10d::Store& store,
    const JobToken& token,
    int64_t rank,
    int64_t size,
    std::chrono::milliseconds limit);

} // namespace tandem::comm
