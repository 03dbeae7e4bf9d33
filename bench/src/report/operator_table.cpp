#include "report/operator_table.h"

#include <fmt/format.h>

#include "report/row_lookup.h"

namespace tandem::bench {

namespace {

constexpr const char* kOperatorLine = "{:<10} {:>12} {:>12} {:>10} {:>8}\n";

} // namespace

std::string operator_table(const std::vector<train::ResultRow>& rows) {
  auto text = fmt::format(
      kOperatorLine,
      "median of",
      "us on cpu",
      "us on sim",
      "more us",
      "more %");
  for (size_t i = 0; i + 1 < rows.size(); i += 2) {
    const auto& what = rows[i].variant;
    const double cpu_us = 1000 * median_ms(rows[i]);
    const double sim_us = 1000 * median_ms(rows[i + 1]);
    text += fmt::format(
        kOperatorLine,
        what.substr(0, what.find('/')),
        fmt::format("{:.3f}", cpu_us),
        fmt::format("{:.3f}", sim_us),
        fmt::format("{:+.3f}", sim_us - cpu_us),
        fmt::format("{:+.1f}", 100 * (sim_us / cpu_us - 1)));
  }
  return text;
}

} // namespace tandem::bench
