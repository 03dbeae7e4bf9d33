#include <tandem/sim/environment.h>

#include <cstdlib>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>

#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

void set_variable(const std::string& name, const std::string& value) {
  REQUIRE(setenv(name.c_str(), value.c_str(), /*overwrite=*/1) == 0);
}

void check_rejected(const std::string& name, const std::string& value) {
  set_variable(name, value);
  const auto text = testing::thrown_text<ConfigError>([] {
                      sim::options_from_environment();
                    }).value_or("nothing thrown");
  INFO(text);
  CHECK(testing::missing_parts(text, {name, "'" + value + "'", "expected"})
            .empty());
  CHECK(unsetenv(name.c_str()) == 0);
}

} // namespace

TEST_CASE("an empty environment leaves sim's options as they are", "[sim]") {
  const sim::Options options{.devices = 3, .capacity_bytes = 1000};
  CHECK(sim::options_from_environment(options) == options);
  CHECK(sim::options_from_environment() == sim::Options{});
}

TEST_CASE("the environment sets sim's devices and their capacity", "[sim]") {
  set_variable("TANDEM_SIM_DEVICES", "5");
  CHECK(
      sim::options_from_environment({.devices = 2, .capacity_bytes = 7}) ==
      sim::Options{.devices = 5, .capacity_bytes = 7});
  set_variable("TANDEM_SIM_CAPACITY_BYTES", "123456789012");
  CHECK(
      sim::options_from_environment() ==
      sim::Options{.devices = 5, .capacity_bytes = 123456789012});
  set_variable("TANDEM_SIM_HAZARD_CHECKS", "1");
  CHECK(sim::options_from_environment().hazard_checks);
  set_variable("TANDEM_SIM_HAZARD_CHECKS", "0");
  CHECK_FALSE(
      sim::options_from_environment({.hazard_checks = true}).hazard_checks);
  CHECK_FALSE(sim::is_initialized());
}

TEST_CASE("a bad value in the environment is an error", "[sim]") {
  for (const auto* value :
       {"", " 2", "2 ", "0", "65", "-1", "+2", "2.0", "x"}) {
    check_rejected("TANDEM_SIM_DEVICES", value);
  }
  for (const auto* value : {"", "-1", "1e9", "16G", "9223372036854775808"}) {
    check_rejected("TANDEM_SIM_CAPACITY_BYTES", value);
  }
  for (const auto* value : {"", "2", "on", "true"}) {
    check_rejected("TANDEM_SIM_HAZARD_CHECKS", value);
  }
}

} // namespace tandem::sim_test
