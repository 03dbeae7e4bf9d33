#include <tandem/sim/sim.h>

#include <mutex>

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>

#include <tandem/core/errors.h>

#include "allocators.h"
#include "device_guard.h"
#include "hooks.h"
#include "registrations.h"
#include "runtime.h"
#include "sim_backend.h"

namespace tandem::sim {

namespace {

// Above the priority of every allocator that LibTorch registers.
constexpr uint8_t kAllocatorPriority = 100;

void check_options(const Options& options) {
  if (options.devices < 1 || options.devices > kMaxDevices) {
    throw ConfigError(fmt::format(
        "Options::devices: expected 1 to {}, got {}",
        kMaxDevices,
        options.devices));
  }
  if (options.capacity_bytes < 0) {
    throw ConfigError(fmt::format(
        "Options::capacity_bytes: expected 0 (no limit) or more, got {}",
        options.capacity_bytes));
  }
  if (options.link_latency.count() < 0 || !(options.link_bytes_per_s >= 0)) {
    throw ConfigError(fmt::format(
        "Options::link_latency, link_bytes_per_s: expected 0 or more, got {} "
        "ns and {}",
        options.link_latency.count(),
        options.link_bytes_per_s));
  }
}

std::string describe(const Options& options) {
  return fmt::format(
      "{} devices of {} bytes, links of {} ns and {} bytes/s, hazard checks {}",
      options.devices,
      options.capacity_bytes,
      options.link_latency.count(),
      options.link_bytes_per_s,
      options.hazard_checks ? "on" : "off");
}

void check_same_as_before(const Options& options) {
  const auto& before = Runtime::get().options();
  if (options != before) {
    throw ConfigError(fmt::format(
        "sim: expected the options of the first init ({}), got {}. The devices "
        "are made once in a process",
        describe(before),
        describe(options)));
  }
}

void check_no_other_accelerator() {
  if (c10::is_privateuse1_backend_registered()) {
    throw ConfigError(
        "sim: expected that no extension has registered a device, got '" +
        c10::get_privateuse1_backend() + "'. A process can have one of them");
  }
  if (!at::hasCUDA()) {
    return;
  }
  const auto& cuda = at::detail::getCUDAHooks();
  for (int index = 0; index < cuda.deviceCount(); ++index) {
    if (cuda.hasPrimaryContext(static_cast<at::DeviceIndex>(index))) {
      throw ConfigError(fmt::format(
          "sim: expected a process that does not use CUDA, got one that uses "
          "cuda:{}. Choose one of the two in a process",
          index));
    }
  }
}

void set_guard(const DeviceGuard* guard) {
  c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kPrivateUse1)]
      .store(guard);
}

/// Registers the guard and has the autograd engine make its threads, one for
/// each device. The engine does that once: if it does not ask for the number of
/// devices now, its threads are made already.
void start_engine(const Options& options) {
  auto guard = std::make_unique<DeviceGuard>(
      static_cast<c10::DeviceIndex>(options.devices));
  set_guard(guard.get());
  torch::autograd::Engine::get_default_engine()
      .initialize_device_threads_pool();
  if (!guard->was_counted()) {
    set_guard(nullptr);
    throw ConfigError(
        "sim: expected that no backward ran before init, but the autograd "
        "engine has made its threads without one for each simulated device. "
        "Call tandem::sim::init first in main");
  }
  static_cast<void>(guard.release()); // LibTorch keeps it
}

void register_device() {
  c10::register_privateuse1_backend("sim");
  c10::SetAllocator(c10::kPrivateUse1, &device_allocator());
  c10::SetCPUAllocator(&host_allocator(), kAllocatorPriority);
  at::RegisterPrivateUse1HooksInterface(make_hooks());
  register_operators();
  comm::register_backend(c10::kPrivateUse1, sim_backend());
}

} // namespace

void init(const Options& options) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (is_initialized()) {
    check_same_as_before(options);
    return;
  }
  check_options(options);
  check_no_other_accelerator();
  start_engine(options);
  Runtime::publish(std::make_unique<Runtime>(options));
  register_device();
}

} // namespace tandem::sim
