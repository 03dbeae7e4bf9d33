#include "measure_memory.h"

#include <algorithm>

#include <tandem/core/allocated_memory.h>

#include "optimizer_tensors.h"
#include "storage_bytes.h"
#include "tensor_table.h"

namespace tandem::detail {

namespace {

/// What the module itself holds; only leaves have gradients to ask for.
ReplicaMemory measure_module(
    const torch::nn::Module& module,
    at::Device device,
    bool has_gradients) {
  ReplicaMemory memory;
  memory.device = device;
  StorageBytes storages;
  for (const auto& parameter : module.parameters()) {
    memory.parameters_bytes += storages.add(parameter);
  }
  for (const auto& buffer : module.buffers()) {
    memory.buffers_bytes += storages.add(buffer);
  }
  if (has_gradients) {
    for (const auto& [name, tensor, is_buffer] : list_base_tensors(module)) {
      memory.gradients_bytes += storages.add(tensor.grad());
    }
  }
  return memory;
}

std::optional<int64_t> measure_optimizer(
    const torch::optim::Optimizer& optimizer) {
  const auto tensors = optimizer_tensors(optimizer);
  if (!tensors) {
    return std::nullopt;
  }
  StorageBytes storages;
  int64_t bytes = 0;
  for (const auto& tensor : *tensors) {
    bytes += storages.add(tensor);
  }
  return bytes;
}

void add_allocated(ReplicaMemory& memory) {
  if (const auto allocated = allocated_memory(memory.device)) {
    memory.current_bytes = allocated->current_bytes;
    memory.peak_bytes = allocated->peak_bytes;
  }
}

} // namespace

MemoryReport measure_memory(
    const std::vector<std::shared_ptr<torch::nn::Module>>& replicas,
    const std::vector<at::Device>& devices,
    at::Device output_device,
    const ForwardMemory& forward,
    const torch::optim::Optimizer* optimizer) {
  MemoryReport report;
  const auto activations = forward.activations_bytes();
  for (size_t index = 0; index < replicas.size(); ++index) {
    auto memory = measure_module(*replicas[index], devices[index], index == 0);
    memory.activations_bytes = activations[index];
    if (forward.outputs_bytes()) {
      memory.outputs_bytes = 0;
    }
    if (optimizer != nullptr && index > 0) {
      memory.optimizer_bytes = 0;
    }
    add_allocated(memory);
    report.replicas.push_back(memory);
  }
  if (optimizer != nullptr) {
    report.replicas.front().optimizer_bytes = measure_optimizer(*optimizer);
  }
  const auto holder = std::find(devices.begin(), devices.end(), output_device);
  auto* outputs = &report.replicas.front();
  if (holder != devices.end()) {
    outputs = &report.replicas[holder - devices.begin()];
  } else {
    outputs = &report.output_device.emplace();
    outputs->device = output_device;
    add_allocated(*outputs);
  }
  outputs->outputs_bytes = forward.outputs_bytes();
  report.mean_loss_saves_bytes = forward.outputs_bytes();
  return report;
}

} // namespace tandem::detail
