#include "forward_memory.h"

#include <algorithm>
#include <utility>

#include <tandem/core/allocated_memory.h>
#include <tandem/core/tree_visitors.h>

#include "storage_bytes.h"

namespace tandem::detail {

ForwardMemory::ForwardMemory(
    std::vector<at::Device> devices,
    at::Device output_device)
    : devices_(std::move(devices)), output_device_(output_device) {
  for (const auto& device : devices_) {
    is_measured_.push_back(
        allocated_memory(device).has_value() &&
        std::count(devices_.begin(), devices_.end(), device) == 1);
  }
}

void ForwardMemory::begin() {
  outputs_bytes_.reset();
  left_bytes_.assign(devices_.size(), 0);
  add_current(-1);
}

void ForwardMemory::pause() {
  add_current(1);
}

void ForwardMemory::resume() {
  add_current(-1);
}

void ForwardMemory::end(const ForwardCall& call, bool has_gathered) {
  add_current(1);
  outputs_bytes_ = 0;
  if (!has_gathered) {
    return;
  }
  TensorCollector output;
  call.visit_output(output);
  StorageBytes storages;
  for (const auto& tensor : output.tensors) {
    *outputs_bytes_ += storages.add(tensor);
  }
  for (size_t replica = 0; replica < devices_.size(); ++replica) {
    if (devices_[replica] == output_device_) {
      left_bytes_[replica] -= *outputs_bytes_;
    }
  }
}

std::vector<std::optional<int64_t>> ForwardMemory::activations_bytes() const {
  std::vector<std::optional<int64_t>> bytes(devices_.size());
  for (size_t replica = 0; replica < devices_.size(); ++replica) {
    if (is_measured_[replica] && outputs_bytes_) {
      bytes[replica] = left_bytes_[replica];
    }
  }
  return bytes;
}

void ForwardMemory::add_current(int64_t factor) {
  for (size_t replica = 0; replica < devices_.size(); ++replica) {
    if (is_measured_[replica]) {
      left_bytes_[replica] +=
          factor * allocated_memory(devices_[replica])->current_bytes;
    }
  }
}

} // namespace tandem::detail
