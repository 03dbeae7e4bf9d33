#pragma once

#include <chrono>
#include <string>

#include <torch/arg.h>

#include <tandem/comm/env_reader.h>

namespace tandem::comm {

/// How long a collective waits before it warns, unless chosen otherwise.
inline constexpr std::chrono::milliseconds kDefaultStallWarning =
    std::chrono::seconds(10);

/// What a group tells about collectives that go wrong.
struct Diagnostics {
  /// Folder, made where it is absent, for the flight records of this process's
  /// groups: one JSON file for each group and rank, written when a collective
  /// fails and on SIGUSR1. `tandem doctor --flight` reads them. Empty: none.
  TORCH_ARG(std::string, flight_dir);
  /// A collective that has waited so long for other ranks warns, once in the
  /// life of a group, and names them. Zero: never.
  TORCH_ARG(std::chrono::milliseconds, stall_warning) = kDefaultStallWarning;
  /// Has all ranks compare each collective (operation, dtype, sizes, root)
  /// before it runs, through the store: slow, for finding mismatches. Then a
  /// rank may not start collectives of several groups in another order than its
  /// peers.
  TORCH_ARG(bool, check_collectives) = false;
};

/// TANDEM_FLIGHT_DIR, TANDEM_STALL_WARNING_S and TANDEM_DEBUG=detail, which
/// sets `check_collectives`.
/// **Throws** `ConfigError` naming the variable, its value and the rule.
Diagnostics diagnostics_from_env(const EnvLookup& lookup);

} // namespace tandem::comm
