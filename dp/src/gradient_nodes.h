#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Stream.h>
#include <torch/csrc/autograd/function.h>

#include "device_sum.h"

namespace tandem::detail {

/// Where gradients of one replica's parameters of one bucket arrive; brings
/// them to the Sum node. It refers to nothing of the wrapper, which may be
/// destroyed before backward, and holds no state, so it serves every graph.
class MoveNode final : public torch::autograd::Node {
 public:
  /// `arrival`: the Sum node's stream, which copies on the Sum node's device
  /// must come before; none on the CPU.
  MoveNode(
      std::shared_ptr<const DeviceSum> sum,
      std::optional<c10::Stream> arrival);

  std::string name() const override {
    return "DataParallelMove";
  }
  torch::autograd::variable_list apply(
      torch::autograd::variable_list&& gradients) override;

 private:
  std::shared_ptr<const DeviceSum> sum_;
  std::optional<c10::Stream> arrival_;
};

/// Adds the gradients that the replicas' Move nodes bring, for the parameters
/// of one bucket, in the order of its inputs.
class SumNode final : public torch::autograd::Node {
 public:
  SumNode(std::shared_ptr<const DeviceSum> sum, size_t num_outputs);

  /// Adds an input for a gradient like `parameter`, which goes to the
  /// `output`-th next edge.
  torch::autograd::Edge add_input(const at::Tensor& parameter, size_t output);

  std::string name() const override {
    return "DataParallelSum";
  }
  torch::autograd::variable_list apply(
      torch::autograd::variable_list&& gradients) override;

 private:
  std::shared_ptr<const DeviceSum> sum_;
  /// Of each output, its inputs.
  std::vector<std::vector<size_t>> inputs_of_;
};

} // namespace tandem::detail
