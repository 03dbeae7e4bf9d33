#include "keep_generators.h"

#include <algorithm>
#include <mutex>

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

namespace tandem::detail {

namespace {

struct SavedGenerator {
  at::Generator generator;
  at::Tensor state;
};

std::vector<SavedGenerator> save_generators(std::vector<at::Device> devices) {
  devices.insert(devices.begin(), at::kCPU);
  std::vector<SavedGenerator> saved;
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (std::find(devices.begin(), device, *device) == device) {
      auto generator = at::globalContext().defaultGenerator(*device);
      const std::lock_guard lock(generator.mutex());
      saved.push_back({generator, generator.get_state()});
    }
  }
  return saved;
}

void restore_generators(std::vector<SavedGenerator>& saved) {
  for (auto& [generator, state] : saved) {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

} // namespace

void keep_generators(
    const std::vector<at::Device>& devices,
    const std::function<void()>& body) {
  auto saved = save_generators(devices);
  try {
    body();
  } catch (...) {
    restore_generators(saved);
    throw;
  }
  restore_generators(saved);
}

} // namespace tandem::detail
