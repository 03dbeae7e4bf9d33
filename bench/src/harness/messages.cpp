#include "harness/messages.h"

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
    hidden_ms)

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
  return nlohmann::json::parse(text).get<ReadyReport>();
}

template <>
TurnOrder from_text(const std::string& text) {
  return nlohmann::json::parse(text).get<TurnOrder>();
}

template <>
TurnReport from_text(const std::string& text) {
  return nlohmann::json::parse(text).get<TurnReport>();
}

} // namespace bench
} // namespace tandem
