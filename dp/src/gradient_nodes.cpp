#include "gradient_nodes.h"

#include <cstdint>
#include <limits>

#include <c10/core/StreamGuard.h>

namespace tandem::detail {

namespace {

/// The engine runs ready nodes of higher number first: a bucket is moved as
/// soon as it is complete, not after the whole backward.
constexpr uint64_t kRunsAsSoonAsReady = std::numeric_limits<uint64_t>::max();

} // namespace

using torch::autograd::variable_list;

MoveNode::MoveNode(
    std::shared_ptr<const DeviceSum> sum,
    std::optional<c10::Stream> arrival)
    : Node(kRunsAsSoonAsReady), sum_(std::move(sum)), arrival_(arrival) {}

variable_list MoveNode::apply(variable_list&& gradients) {
  std::vector<size_t> wanted;
  variable_list selected;
  for (size_t index = 0; index < gradients.size(); ++index) {
    if (gradients[index].defined() && task_should_compute_output(index)) {
      wanted.push_back(index);
      selected.push_back(std::move(gradients[index]));
    }
  }
  variable_list outputs(gradients.size());
  // The engine has set the stream of this node's device only.
  const c10::OptionalStreamGuard on_arrival(arrival_);
  auto moved = sum_->bring(std::move(selected));
  for (size_t i = 0; i < wanted.size(); ++i) {
    outputs[wanted[i]] = std::move(moved[i]);
  }
  return outputs;
}

SumNode::SumNode(std::shared_ptr<const DeviceSum> sum, size_t num_outputs)
    : Node(kRunsAsSoonAsReady), sum_(std::move(sum)), inputs_of_(num_outputs) {}

torch::autograd::Edge SumNode::add_input(
    const at::Tensor& parameter,
    size_t output) {
  const uint32_t input = add_input_metadata(parameter);
  inputs_of_.at(output).push_back(input);
  return {getptr(), input};
}

variable_list SumNode::apply(variable_list&& gradients) {
  variable_list outputs(inputs_of_.size());
  for (size_t output = 0; output < outputs.size(); ++output) {
    if (!task_should_compute_output(output)) {
      continue;
    }
    variable_list terms;
    for (const size_t input : inputs_of_[output]) {
      if (gradients[input].defined()) {
        terms.push_back(std::move(gradients[input]));
      }
    }
    if (!terms.empty()) {
      outputs[output] = sum_->add(terms);
    }
  }
  return outputs;
}

} // namespace tandem::detail
