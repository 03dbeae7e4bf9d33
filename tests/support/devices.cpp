#include "devices.h"

#include <cstdlib>
#include <string>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <tandem/sim/sim.h>

#include "before_tests.h"

namespace tandem::test {

namespace {

constexpr const char* kCheckedSim = "sim-hazards";

std::string kind_of_devices() {
  const char* const variable = std::getenv("TANDEM_TEST_DEVICES");
  return variable == nullptr ? "cpu" : variable;
}

size_t count_devices() {
  return c10::impl::VirtualGuardImpl(device_type()).deviceCount();
}

} // namespace

at::DeviceType device_type() {
  const auto kind = kind_of_devices();
  if (kind == "cpu") {
    return at::kCPU;
  }
  if (kind == "sim" || kind == kCheckedSim) {
    return at::kPrivateUse1;
  }
  TORCH_CHECK(
      kind == "cuda",
      "TANDEM_TEST_DEVICES: expected cpu, sim, sim-hazards or cuda, got ",
      kind);
  return at::kCUDA;
}

std::vector<at::Device> devices(size_t count) {
  if (device_type() == at::kCPU) {
    return std::vector<at::Device>(count, at::kCPU);
  }
  std::vector<at::Device> all;
  all.reserve(count);
  for (size_t index = 0; index < count; ++index) {
    all.emplace_back(
        device_type(),
        static_cast<at::DeviceIndex>(index % count_devices()));
  }
  return all;
}

at::Device device() {
  return devices(1).front();
}

void start_devices() {
  if (device_type() == at::kPrivateUse1) {
    sim::init(
        {.devices = kNumSimDevices,
         .hazard_checks = kind_of_devices() == kCheckedSim});
  }
}

} // namespace tandem::test
