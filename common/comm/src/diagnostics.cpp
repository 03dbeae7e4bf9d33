#include <tandem/comm/diagnostics.h>

#include <cstdint>

namespace tandem::comm {

namespace {

constexpr const char* kFlightDir = "TANDEM_FLIGHT_DIR";
constexpr const char* kStallWarning = "TANDEM_STALL_WARNING_S";
constexpr const char* kDebug = "TANDEM_DEBUG";
constexpr int64_t kMaxStallSeconds = 86'400;

} // namespace

Diagnostics diagnostics_from_env(const EnvLookup& lookup) {
  const EnvReader reader(lookup);
  Diagnostics diagnostics;
  if (const auto folder = lookup(kFlightDir)) {
    diagnostics.flight_dir(*folder);
  }
  if (reader.has(kStallWarning)) {
    diagnostics.stall_warning(std::chrono::seconds(reader.number(
        kStallWarning,
        0,
        kMaxStallSeconds,
        "seconds, 0 (never) to 86400")));
  }
  const auto debug = lookup(kDebug).value_or("");
  if (debug == "detail") {
    diagnostics.check_collectives(true);
  } else if (!debug.empty() && debug != "off") {
    reader.reject(kDebug, "'detail', 'off' or nothing");
  }
  return diagnostics;
}

} // namespace tandem::comm
