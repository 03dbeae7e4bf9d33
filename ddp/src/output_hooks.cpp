#include "output_hooks.h"

#include <memory>
#include <unordered_set>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

namespace tandem::detail {

namespace {

class CallBeforeNode final : public torch::autograd::FunctionPreHook {
 public:
  explicit CallBeforeNode(std::function<void()> function)
      : function_(std::move(function)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& grads) override {
    function_();
    return grads;
  }

 private:
  std::function<void()> function_;
};

} // namespace

void call_before_backward_of(
    const std::vector<at::Tensor>& outputs,
    const std::function<void()>& function) {
  std::unordered_set<torch::autograd::Node*> seen;
  for (const auto& output : outputs) {
    if (output.defined() && output.grad_fn() &&
        seen.insert(output.grad_fn().get()).second) {
      output.grad_fn()->add_pre_hook(
          std::make_unique<CallBeforeNode>(function));
    }
  }
}

} // namespace tandem::detail
