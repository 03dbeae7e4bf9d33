#include "runtime.h"

#include <atomic>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "generator.h"

namespace tandem::sim {

namespace {

std::atomic<Runtime*>& registered_runtime() {
  static std::atomic<Runtime*> runtime{nullptr};
  return runtime;
}

int64_t index_of(at::Device device) {
  if (device.type() != at::kPrivateUse1 || !device.has_index()) {
    throw ConfigError(
        "device: expected a simulated one with its index, such as sim:0, got " +
        device.str());
  }
  return device.index();
}

} // namespace

DeviceState::DeviceState(int64_t index, const Options& options)
    : memory(index, options.capacity_bytes),
      generator(make_generator(static_cast<int8_t>(index))) {}

Runtime::Runtime(const Options& options)
    : options_(options),
      copies_(options.devices),
      hazards_(options.hazard_checks ? std::make_unique<Hazards>() : nullptr) {
  for (int64_t index = 0; index < options.devices; ++index) {
    devices_.push_back(std::make_unique<DeviceState>(index, options));
  }
}

Runtime* Runtime::find() noexcept {
  return registered_runtime().load();
}

Runtime& Runtime::get() {
  auto* const runtime = find();
  if (runtime == nullptr) {
    throw ConfigError(
        "sim: expected simulated devices, got none. Call tandem::sim::init "
        "first");
  }
  return *runtime;
}

void Runtime::publish(std::unique_ptr<Runtime> runtime) {
  registered_runtime().store(runtime.release());
}

DeviceState& Runtime::device(int64_t index) {
  if (index < 0 || index >= num_devices()) {
    throw ConfigError(fmt::format(
        "device: expected sim:0 to sim:{}, got sim:{}. Ask tandem::sim::init "
        "for more devices",
        num_devices() - 1,
        index));
  }
  return *devices_[static_cast<size_t>(index)];
}

void Runtime::reset_counters() {
  copies_.reset();
  for (auto& device : devices_) {
    device->counter.reset();
  }
}

Hazards* active_hazards() noexcept {
  auto* const runtime = Runtime::find();
  return runtime == nullptr ? nullptr : runtime->hazards();
}

bool is_initialized() {
  return Runtime::find() != nullptr;
}

int64_t device_count() {
  const auto* const runtime = Runtime::find();
  return runtime == nullptr ? 0 : runtime->num_devices();
}

at::Device device(int64_t index) {
  Runtime::get().device(index);
  return {at::kPrivateUse1, static_cast<int8_t>(index)};
}

MemoryStatistics memory_statistics(at::Device device) {
  return Runtime::get().device(index_of(device)).memory.statistics();
}

void reset_peak(at::Device device) {
  Runtime::get().device(index_of(device)).memory.reset_peak();
}

DeviceCounters device_counters(at::Device device) {
  return Runtime::get().device(index_of(device)).counter.read();
}

CopyCounters copy_counters(at::Device source, at::Device destination) {
  auto& runtime = Runtime::get();
  const auto place = [&](at::Device device) {
    if (device.is_cpu()) {
      return CopyMatrix::kHost;
    }
    const auto index = index_of(device);
    runtime.device(index);
    return index;
  };
  return runtime.copies().read(place(source), place(destination));
}

void reset_counters() {
  Runtime::get().reset_counters();
}

} // namespace tandem::sim
