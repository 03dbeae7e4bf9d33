#include "gradient_hooks.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <torch/csrc/autograd/function_hook.h>

namespace tandem::detail {

namespace {

using torch::autograd::variable_list;

class CallWithIndex final : public torch::autograd::FunctionPostHook {
 public:
  CallWithIndex(GradientHooks::OnGradient function, size_t index)
      : function_(std::move(function)), index_(index) {}

  variable_list operator()(
      const variable_list& outputs,
      const variable_list& inputs) override {
    function_(index_, inputs[0].defined());
    return outputs;
  }

 private:
  GradientHooks::OnGradient function_;
  size_t index_;
};

} // namespace

GradientHooks::GradientHooks(
    const std::vector<NamedTensor>& parameters,
    OnGradient on_gradient)
    : on_gradient_(std::move(on_gradient)) {
  attached_.reserve(parameters.size());
  for (size_t index = 0; index < parameters.size(); ++index) {
    attached_.push_back(attach(index, parameters[index].tensor));
  }
}

bool GradientHooks::is_hooked(const at::Tensor& parameter) {
  const auto accumulator =
      torch::autograd::impl::try_get_grad_accumulator(parameter);
  if (!accumulator) {
    return false;
  }
  const auto& hooks = accumulator->post_hooks();
  return std::any_of(hooks.begin(), hooks.end(), [](const auto& hook) {
    return dynamic_cast<const CallWithIndex*>(hook.get()) != nullptr;
  });
}

GradientHooks::~GradientHooks() {
  for (const auto& attached : attached_) {
    detach(attached);
  }
}

void GradientHooks::reattach(size_t index, const at::Tensor& parameter) {
  if (!parameter.requires_grad()) {
    return;
  }
  auto& attached = attached_[index];
  const auto current =
      torch::autograd::impl::try_get_grad_accumulator(parameter);
  if (current.get() != attached.accumulator.get()) {
    detach(attached);
    attached = attach(index, parameter);
  }
}

GradientHooks::Attached GradientHooks::attach(
    size_t index,
    const at::Tensor& parameter) {
  auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
  const uintptr_t key = accumulator->add_post_hook(
      std::make_unique<CallWithIndex>(on_gradient_, index));
  indices_[accumulator.get()] = index;
  return {std::move(accumulator), key};
}

void GradientHooks::detach(const Attached& attached) {
  attached.accumulator->del_post_hook(attached.key);
  indices_.erase(attached.accumulator.get());
}

} // namespace tandem::detail
