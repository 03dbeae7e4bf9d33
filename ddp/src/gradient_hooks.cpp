#include "gradient_hooks.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/function_hook.h>

namespace tandem::detail {

namespace {

using torch::autograd::variable_list;

class CallWithIndex final : public torch::autograd::FunctionPostHook {
 public:
  CallWithIndex(std::function<void(size_t)> function, size_t index)
      : function_(std::move(function)), index_(index) {}

  variable_list operator()(
      const variable_list& outputs,
      const variable_list& /*inputs*/) override {
    function_(index_);
    return outputs;
  }

 private:
  std::function<void(size_t)> function_;
  size_t index_;
};

} // namespace

GradientHooks::GradientHooks(
    const std::vector<NamedTensor>& parameters,
    const std::function<void(size_t)>& on_gradient) {
  attached_.reserve(parameters.size());
  for (size_t index = 0; index < parameters.size(); ++index) {
    auto accumulator =
        torch::autograd::impl::grad_accumulator(parameters[index].tensor);
    const uintptr_t key = accumulator->add_post_hook(
        std::make_unique<CallWithIndex>(on_gradient, index));
    attached_.push_back({std::move(accumulator), key});
  }
}

GradientHooks::~GradientHooks() {
  for (const auto& attached : attached_) {
    attached.accumulator->del_post_hook(attached.key);
  }
}

bool GradientHooks::is_attached(size_t index, const at::Tensor& parameter)
    const {
  return torch::autograd::impl::try_get_grad_accumulator(parameter).get() ==
      attached_[index].accumulator.get();
}

} // namespace tandem::detail
