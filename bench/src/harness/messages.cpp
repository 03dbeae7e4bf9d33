#include "harness/messages.h"

#include <limits>

#include <nlohmann/json.hpp>

namespace tandem {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    Counters,
    forwards,
    bytes_moved,
    collectives,
    copies)

namespace bench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verification, max_abs_diff, first_mismatch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    ReadyReport,
    verification,
    step_gradient_error,
    summed_gradient_error,
    rows,
    flops,
    device,
    backend)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TurnOrder, untimed_steps, timed_steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    TurnReport,
    step_ms,
    bytes_from_first_device,
    peak_bytes,
    steps_run,
    counters,
    communication_ms,
    hidden_ms,
    gradient_bytes,
    hook_bytes)

namespace {

/// JSON has no NaN and no infinity: they were written as null.
void read_nulls_as_nan(nlohmann::json& value) {
  if (value.is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (value.is_structured()) {
    for (auto& element : value) {
      read_nulls_as_nan(element);
    }
  }
}

nlohmann::json parse(const std::string& text) {
  auto value = nlohmann::json::parse(text);
  read_nulls_as_nan(value);
  return value;
}

} // namespace

std::string to_text(const ReadyReport& report) {
  return nlohmann::json(report).dump();
}

std::string to_text(const TurnOrder& order) {
  return nlohmann::json(order).dump();
}

std::string to_text(const TurnReport& report) {
  return nlohmann::json(report).dump();
}

template <>
ReadyReport from_text(const std::string& text) {
  return parse(text).get<ReadyReport>();
}

template <>
TurnOrder from_text(const std::string& text) {
  return parse(text).get<TurnOrder>();
}

template <>
TurnReport from_text(const std::string& text) {
  return parse(text).get<TurnReport>();
}

} // namespace bench
} // namespace tandem
