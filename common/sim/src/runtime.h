#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Generator.h>

#include <tandem/sim/sim.h>

#include "device_memory.h"
#include "hazards.h"
#include "traffic.h"

namespace tandem::sim {

/// One simulated device.
struct DeviceState {
  DeviceState(int64_t index, const Options& options);

  DeviceMemory memory;
  KernelCounter counter;
  /// The default generator.
  at::Generator generator;
};

/// All that `init` made; lives until the process ends, since LibTorch keeps
/// pointers into it.
class Runtime {
 public:
  explicit Runtime(const Options& options);

  /// Null before `init`.
  static Runtime* find() noexcept;
  /// **Throws** `ConfigError` before `init`.
  static Runtime& get();
  static void publish(std::unique_ptr<Runtime> runtime);

  const Options& options() const {
    return options_;
  }
  int64_t num_devices() const {
    return options_.devices;
  }
  /// **Throws** `ConfigError` if there is no such device.
  DeviceState& device(int64_t index);
  CopyMatrix& copies() {
    return copies_;
  }
  /// Null outside hazard mode.
  Hazards* hazards() {
    return hazards_.get();
  }
  void reset_counters();

 private:
  Options options_;
  std::vector<std::unique_ptr<DeviceState>> devices_;
  CopyMatrix copies_;
  std::unique_ptr<Hazards> hazards_;
};

/// Null before `init` and outside hazard mode.
Hazards* active_hazards() noexcept;

} // namespace tandem::sim
