#include "device_sum.h"

#include <optional>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

namespace {

class OrderedDeviceSum final : public DeviceSum {
 public:
  OrderedDeviceSum(
      at::Device destination,
      std::shared_ptr<TransferCounts> counts)
      : destination_(destination), counts_(std::move(counts)) {}

  std::vector<at::Tensor> bring(
      std::vector<at::Tensor> gradients) const override {
    ++counts_->gradient_buckets;
    for (const auto& group : group_by_type(gradients)) {
      if (gradients[group.front()].device() != destination_) {
        move_group(gradients, group);
      }
    }
    return gradients;
  }

  at::Tensor add(const std::vector<at::Tensor>& gradients) const override {
    at::Tensor sum = gradients.front();
    for (size_t index = 1; index < gradients.size(); ++index) {
      sum = sum + gradients[index];
    }
    return sum;
  }

 private:
  void move_group(
      std::vector<at::Tensor>& gradients,
      const std::vector<size_t>& group) const {
    std::vector<size_t> dense;
    std::vector<at::Tensor> parts;
    for (const size_t index : group) {
      if (gradients[index].layout() == at::kStrided) {
        dense.push_back(index);
        parts.push_back(gradients[index]);
      } else {
        gradients[index] = gradients[index].to(destination_);
        ++counts_->copies;
      }
    }
    if (dense.empty()) {
      return;
    }
    const auto moved = move_together(parts, destination_);
    ++counts_->copies;
    for (size_t i = 0; i < dense.size(); ++i) {
      gradients[dense[i]] = moved[i];
      counts_->bytes += static_cast<int64_t>(moved[i].nbytes());
    }
  }

  at::Device destination_;
  std::shared_ptr<TransferCounts> counts_;
};

} // namespace

std::shared_ptr<const DeviceSum> make_ordered_device_sum(
    at::Device destination,
    std::shared_ptr<TransferCounts> counts) {
  return std::make_shared<OrderedDeviceSum>(destination, std::move(counts));
}

std::vector<at::Tensor> move_together(
    const std::vector<at::Tensor>& tensors,
    at::Device destination) {
  if (tensors.size() == 1) {
    return {tensors.front().to(destination, /*non_blocking=*/true)};
  }
  std::vector<at::Tensor> parts;
  std::vector<int64_t> numels;
  for (const auto& tensor : tensors) {
    parts.push_back(tensor.reshape({-1}));
    numels.push_back(tensor.numel());
  }
  const auto flat = at::cat(parts).to(destination, /*non_blocking=*/true);
  // Each part gets a storage of its own: a slice that became a .grad would keep
  // the whole bucket alive.
  auto moved = at::split_with_sizes_copy(flat, numels);
  std::optional<at::AutoDispatchBelowADInplaceOrView> no_view_tracking;
  if (!at::GradMode::is_enabled()) {
    no_view_tracking.emplace();
  }
  for (size_t index = 0; index < moved.size(); ++index) {
    moved[index] = moved[index].view(tensors[index].sizes());
  }
  return moved;
}

} // namespace tandem::detail
