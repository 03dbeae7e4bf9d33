// The devices that the tests of this process use. Binaries that are built for
// several kinds (DEVICES of tandem_add_test) run once for each: the environment
// variable TANDEM_TEST_DEVICES names the kind, cpu, sim, sim-hazards (sim with
// Options::hazard_checks) or cuda.
#pragma once

#include <cstddef>
#include <vector>

#include <c10/core/Device.h>

namespace tandem::test {

/// The most simulated devices there are.
inline constexpr size_t kNumSimDevices = 5;

at::DeviceType device_type();

/// The first `count` devices. The CPU comes `count` times, and GPUs come
/// again where there are fewer.
std::vector<at::Device> devices(size_t count);

/// The first one.
at::Device device();

} // namespace tandem::test
