#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tandem/core/counters.h>

#include "harness/verification.h"

namespace tandem::bench {

/// A worker has been verified and can be timed.
struct ReadyReport {
  /// Of modes whose results are the bare network's.
  Verification verification;
  /// Of the others; -1 for those.
  double step_gradient_error = -1;
  double summed_gradient_error = -1;
  /// Rows of one of its steps, and the floating-point operations of one as
  /// `count_flops` has them.
  int64_t rows = 0;
  int64_t flops = 0;
  /// The device's type, and the backend between ranks; empty if there is none.
  std::string device;
  std::string backend;
};

/// What a worker is to do next; no step at all is the end.
struct TurnOrder {
  int64_t untimed_steps = 0;
  int64_t timed_steps = 0;
};

/// What a worker has done since it was made.
struct TurnReport {
  /// Of the last turn.
  std::vector<double> step_ms;
  /// Of one of its steps, from the first device to the others; -1 where nobody
  /// counts them.
  int64_t bytes_from_first_device = -1;
  std::vector<int64_t> peak_bytes;
  int64_t steps_run = 0;
  Counters counters;
  /// Mean of a step's communication, and of the part that backward hid; -1
  /// where nobody measures them.
  double communication_ms = -1;
  double hidden_ms = -1;
  /// What this worker's gradients take in one of the turn's steps, and what its
  /// communication hook sent in their place; -1 without a hook.
  int64_t gradient_bytes = -1;
  int64_t hook_bytes = -1;
};

std::string to_text(const ReadyReport& report);
std::string to_text(const TurnOrder& order);
std::string to_text(const TurnReport& report);

/// The reverse. **Throws** `nlohmann::json::exception` for any other text.
template <typename Message>
Message from_text(const std::string& text);
template <>
ReadyReport from_text(const std::string& text);
template <>
TurnOrder from_text(const std::string& text);
template <>
TurnReport from_text(const std::string& text);

} // namespace tandem::bench
