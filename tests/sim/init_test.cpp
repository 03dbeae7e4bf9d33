#include <tandem/sim/sim.h>
#include <tandem/sim/statistics.h>

#include <ATen/DeviceAccelerator.h>
#include <tandem/testing/error_text.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

std::string config_error(const std::function<void()>& function) {
  return testing::thrown_text<ConfigError>(function).value_or("nothing thrown");
}

void check_mentions(
    const std::string& text,
    const std::vector<std::string>& parts) {
  INFO(text);
  CHECK(testing::missing_parts(text, parts).empty());
}

} // namespace

TEST_CASE("init registers nothing before it is called", "[sim]") {
  CHECK_FALSE(sim::is_initialized());
  CHECK(sim::device_count() == 0);
  CHECK_FALSE(c10::is_privateuse1_backend_registered());
  CHECK_FALSE(c10::impl::hasDeviceGuardImpl(at::kPrivateUse1));
  check_mentions(
      config_error([] { sim::device(0); }),
      {"sim", "tandem::sim::init"});
}

TEST_CASE("init makes the devices that were asked for", "[sim]") {
  start_devices(3);
  CHECK(sim::is_initialized());
  CHECK(sim::device_count() == 3);
  CHECK(at::Device("sim:2") == sim::device(2));
  CHECK(sim::device(2).str() == "sim:2");
  CHECK(at::getAccelerator(true) == at::kPrivateUse1);
  CHECK(at::accelerator::deviceCount() == 3);
  check_mentions(config_error([] { sim::device(3); }), {"sim:2", "sim:3"});
  check_mentions(
      config_error([] { sim::memory_statistics(at::kCPU); }),
      {"device", "cpu"});
  check_mentions(
      config_error([] { torch::ones({1}, at::Device("sim:3")); }),
      {"sim:2", "sim:3"});
}

TEST_CASE("init twice with the same options does nothing", "[sim]") {
  start_devices(2);
  const auto tensor = torch::ones({2}, sim::device(1));
  sim::init({.devices = 2});
  CHECK(tensor.sum().item<float>() == 2);
}

TEST_CASE("init with other options than before is an error", "[sim]") {
  start_devices(2);
  check_mentions(
      config_error([] { sim::init({.devices = 3}); }),
      {"2 devices", "3 devices"});
  check_mentions(
      config_error([] { sim::init({.devices = 2, .hazard_checks = true}); }),
      {"hazard checks off", "hazard checks on"});
  CHECK(sim::device_count() == 2);
}

TEST_CASE("init refuses options out of range and registers nothing", "[sim]") {
  check_mentions(
      config_error([] { sim::init({.devices = 0}); }),
      {"devices", "1", "64", "0"});
  check_mentions(
      config_error([] { sim::init({.devices = 65}); }),
      {"devices", "64", "65"});
  check_mentions(
      config_error([] { sim::init({.capacity_bytes = -1}); }),
      {"capacity_bytes", "-1"});
  CHECK_FALSE(sim::is_initialized());
  CHECK_FALSE(c10::is_privateuse1_backend_registered());
}

TEST_CASE("init after a backward is an error and registers nothing", "[sim]") {
  torch::ones({1}, torch::requires_grad()).sum().backward();
  check_mentions(
      config_error([] { sim::init({.devices = 2}); }),
      {"backward", "init"});
  CHECK_FALSE(sim::is_initialized());
  CHECK_FALSE(c10::is_privateuse1_backend_registered());
  CHECK_FALSE(c10::impl::hasDeviceGuardImpl(at::kPrivateUse1));
}

TEST_CASE("init beside another extension's device is an error", "[sim]") {
  c10::register_privateuse1_backend("other");
  check_mentions(config_error([] { sim::init({.devices = 2}); }), {"other"});
}

TEST_CASE("backward runs on the last of the devices", "[sim]") {
  start_devices(4);
  const auto input =
      torch::ones({2}, torch::dtype(torch::kFloat).device(sim::device(3)))
          .requires_grad_();
  (input * 3).sum().backward();
  CHECK(input.grad().device() == sim::device(3));
  CHECK(same_bits(input.grad(), torch::full({2}, 3.0F)));
}

} // namespace tandem::sim_test
