#include <tandem/comm/diagnostics.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::missing_parts;
using tandem::testing::thrown_text;

namespace {

comm::Diagnostics read_diagnostics(
    const std::map<std::string, std::string>& variables) {
  return comm::diagnostics_from_env(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt
                                        : std::make_optional(found->second);
      });
}

} // namespace

TEST_CASE("diagnostics follow the environment", "[comm]") {
  const auto plain = read_diagnostics({});
  CHECK(plain.flight_dir().empty());
  CHECK(plain.stall_warning() == 10s);
  CHECK_FALSE(plain.check_collectives());
  const auto chosen = read_diagnostics(
      {{"TANDEM_FLIGHT_DIR", "/a b"},
       {"TANDEM_STALL_WARNING_S", "0"},
       {"TANDEM_DEBUG", "detail"}});
  CHECK(chosen.flight_dir() == "/a b");
  CHECK(chosen.stall_warning() == 0s);
  CHECK(chosen.check_collectives());
  CHECK_FALSE(read_diagnostics({{"TANDEM_DEBUG", "off"}}).check_collectives());
}

TEST_CASE("a variable of diagnostics that is wrong is named", "[comm]") {
  const auto text_for = [](const std::string& name, const std::string& value) {
    return thrown_text<tandem::ConfigError>([&] {
             read_diagnostics({{name, value}});
           })
        .value_or("nothing thrown");
  };
  CHECK(missing_parts(
            text_for("TANDEM_DEBUG", "details"),
            {"TANDEM_DEBUG", "'detail'", "'details'"})
            .empty());
  CHECK(missing_parts(
            text_for("TANDEM_STALL_WARNING_S", "10s"),
            {"TANDEM_STALL_WARNING_S", "seconds", "'10s'"})
            .empty());
}
