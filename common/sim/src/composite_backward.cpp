#include "composite_backward.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "runtime.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

using torch::autograd::variable_list;

/// In-place changes of the one are seen by the other.
void share_version(const at::Tensor& from, const at::Tensor& to) {
  to.unsafeGetTensorImpl()->set_version_counter(
      torch::autograd::impl::version_counter(from));
}

} // namespace

variable_list CompositeBackward::apply(variable_list&& gradients) {
  TORCH_CHECK(!results_.empty(), torch::autograd::ERR_BACKWARD_TWICE);
  const bool create_graph = at::GradMode::is_enabled();
  const auto next = detail::make_node<CompositeBackward>(device_);
  if (create_graph) {
    next->leaves_ = leaves_;
    next->kept_ = kept_;
    next->set_next_edges(torch::autograd::edge_list(next_edges()));
  }
  AliasMap aliases;
  variable_list reached;
  variable_list reached_gradients;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      continue;
    }
    const auto alias = aliases.to_cpu(gradients[i], Access::kRead);
    if (create_graph) {
      next->keep(gradients[i]);
      if (gradients[i].requires_grad()) {
        next->add_leaf(alias, gradients[i]);
      }
    }
    reached.push_back(results_.at(i));
    reached_gradients.push_back(alias);
  }
  if (reached.empty()) {
    return variable_list(leaves_.size());
  }
  const auto inner = inner_gradients(reached, reached_gradients, aliases);
  variable_list outputs;
  for (const auto& gradient : inner) {
    outputs.push_back(aliases.to_device(gradient, device_));
  }
  if (auto* const hazards = active_hazards()) {
    hazards->add_results(
        current_stream_of(device_.index()),
        name(),
        aliases.result_uses());
  }
  if (create_graph) {
    connect_results(next, inner, outputs);
  }
  return outputs;
}

variable_list CompositeBackward::inner_gradients(
    const variable_list& results,
    const variable_list& gradients,
    AliasMap& aliases) const {
  if (auto* const hazards = active_hazards()) {
    auto uses = aliases.argument_uses();
    for (const auto& storage : kept_) {
      append_use(uses, storage, UseKind::kRead);
    }
    hazards->add_work(current_stream_of(device_.index()), name(), uses);
  }
  const CountOn count(Runtime::get().device(device_.index()).memory);
  return torch::autograd::grad(
      results,
      leaves_,
      gradients,
      /*retain_graph=*/true,
      /*create_graph=*/at::GradMode::is_enabled(),
      /*allow_unused=*/true);
}

void CompositeBackward::release_variables() {
  leaves_.clear();
  results_.clear();
  kept_.clear();
}

void CompositeBackward::add_leaf(
    const at::Tensor& alias,
    const at::Tensor& tensor) {
  share_version(tensor, alias);
  alias.set_requires_grad(true);
  leaves_.push_back(alias);
  add_next_edge(torch::autograd::impl::gradient_edge(tensor));
}

void CompositeBackward::keep(const at::Tensor& tensor) {
  if (tensor.is_privateuseone()) {
    kept_.push_back(tensor.storage());
  }
}

void connect_results(
    const detail::NodePtr& node,
    const variable_list& results,
    variable_list outputs) {
  auto& composite = dynamic_cast<CompositeBackward&>(*node);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !results[i].requires_grad()) {
      continue;
    }
    composite.add_result(results[i]);
    composite.keep(outputs[i]);
    share_version(results[i], outputs[i]);
    torch::autograd::set_history(outputs[i], node);
  }
}

} // namespace tandem::sim
