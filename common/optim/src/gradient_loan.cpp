#include "gradient_loan.h"

#include <cstddef>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <tandem/core/flat_buffer.h>

#include "flat_transfer.h"

namespace tandem::detail {

namespace {

at::Tensor dense_gradient(const at::Tensor& parameter) {
  const auto& gradient = parameter.grad();
  if (!gradient.defined()) {
    return at::zeros_like(parameter);
  }
  return gradient.layout() == at::kStrided ? gradient : gradient.to_dense();
}

std::vector<at::Tensor> select(
    const std::vector<at::Tensor>& tensors,
    const std::vector<size_t>& indices) {
  std::vector<at::Tensor> selected;
  selected.reserve(indices.size());
  for (const size_t index : indices) {
    selected.push_back(tensors[index]);
  }
  return selected;
}

} // namespace

GradientLoan::GradientLoan(
    comm::ProcessGroup& group,
    int64_t from,
    int64_t to,
    const std::vector<at::Tensor>& parameters) {
  const at::NoGradGuard no_grad;
  if (parameters.empty()) {
    return;
  }
  std::vector<at::Tensor> gradients;
  auto is_there = at::zeros(
      {static_cast<int64_t>(parameters.size())},
      at::kByte); // [parameters]
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (group.rank() == from) {
      gradients.push_back(dense_gradient(parameters[i]));
      is_there[static_cast<int64_t>(i)] =
          static_cast<int64_t>(parameters[i].grad().defined());
    } else {
      gradients.push_back(at::empty_like(parameters[i]));
    }
  }
  group.broadcast(is_there, from);
  for (const auto& indices : group_by_type(gradients)) {
    const auto parts = select(gradients, indices);
    const auto flat =
        group.rank() == from ? flatten_copy(parts) : empty_flat(parts);
    if (flat.numel() > 0) {
      auto bytes = flat.view(at::kByte);
      group.broadcast(bytes, from);
    }
    if (group.rank() == to) {
      copy_from_flat(flat, parts);
    }
  }
  if (group.rank() != to) {
    return;
  }
  parameters_ = parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto& gradient = parameters_[i].mutable_grad();
    previous_.push_back(gradient);
    const bool is_lent = is_there[static_cast<int64_t>(i)].item<bool>();
    gradient = is_lent ? gradients[i] : at::Tensor();
  }
}

GradientLoan::~GradientLoan() {
  for (size_t i = 0; i < previous_.size(); ++i) {
    parameters_[i].mutable_grad() = previous_[i];
  }
}

} // namespace tandem::detail
