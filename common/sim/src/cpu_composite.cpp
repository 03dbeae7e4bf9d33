#include "cpu_composite.h"

#include <array>

#include <tandem/core/detail/torch_compat.h>

#include "composite_backward.h"
#include "cpu_kernel.h"
#include "generator.h"
#include "runtime.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

using torch::autograd::variable_list;

constexpr std::array<const char*, 11> kCpuComposites{
    "lstm.input",
    "lstm.data",
    "gru.input",
    "gru.data",
    "rnn_tanh.input",
    "rnn_tanh.data",
    "rnn_relu.input",
    "rnn_relu.data",
    "lstm_cell",
    "gru_cell",
    "scaled_dot_product_attention",
};

c10::OperatorHandle find_operator(const std::string& name) {
  const auto dot = name.find('.');
  const auto overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      ("aten::" + name.substr(0, dot)).c_str(),
      overload.c_str());
}

void append_tensors(const c10::IValue& value, variable_list& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      tensors.push_back(tensor);
    }
  }
}

/// All tensors among the last `count` values of `stack`.
variable_list last_tensors(const torch::jit::Stack& stack, size_t count) {
  variable_list tensors;
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    append_tensors(stack[i], tensors);
  }
  return tensors;
}

bool any_requires_grad(const variable_list& tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.requires_grad()) {
      return true;
    }
  }
  return false;
}

/// Makes the aliases of tensors that require grad the inner graph's leaves.
void connect_inputs(
    CompositeBackward& node,
    const variable_list& tensors,
    const variable_list& aliases) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    node.keep(tensors[i]);
    if (tensors[i].requires_grad() && !aliases[i].requires_grad()) {
      node.add_leaf(aliases[i], tensors[i]);
    }
  }
}

class CompositeKernel final : public c10::OperatorKernel {
 public:
  explicit CompositeKernel(const c10::FunctionSchema& schema)
      : signature_(schema) {}

  void operator()(
      const c10::OperatorHandle& op,
      c10::DispatchKeySet /*keys*/,
      torch::jit::Stack* stack) {
    const auto tensors = last_tensors(*stack, signature_.arguments.size());
    if (at::GradMode::is_enabled() && any_requires_grad(tensors)) {
      run_with_autograd(op, tensors, *stack);
    } else {
      run_cpu_kernel(signature_, c10::DispatchKey::CPU, op, *stack);
    }
  }

 private:
  void run_with_autograd(
      const c10::OperatorHandle& op,
      const variable_list& tensors,
      torch::jit::Stack& stack) {
    AliasMap aliases;
    const auto device = arguments_to_cpu(signature_, aliases, stack);
    const auto node = detail::make_node<CompositeBackward>(device);
    connect_inputs(
        *node,
        tensors,
        last_tensors(stack, signature_.arguments.size()));
    auto& state = Runtime::get().device(device.index());
    {
      std::optional<LendState> lend;
      if (signature_.draws_unasked(stack)) {
        lend.emplace(cpu_generator(state.generator));
      }
      const CountOn count(state.memory);
      op.callBoxed(&stack);
    }
    const auto results = last_tensors(stack, signature_.num_results);
    results_to_device(signature_, aliases, device, stack);
    connect_results(node, results, last_tensors(stack, signature_.num_results));
  }

  OperatorSignature signature_;
};

} // namespace

std::set<std::string> register_cpu_composites(torch::Library& dense) {
  std::set<std::string> names;
  for (const auto* name : kCpuComposites) {
    dense.impl(
        name,
        torch::CppFunction::makeFromBoxedFunctor(std::make_unique<CpuKernel>(
            find_operator(name).schema(),
            c10::DispatchKey::CPU)));
    names.insert(name);
  }
  return names;
}

void register_cpu_composites_autograd(torch::Library& autograd) {
  for (const auto* name : kCpuComposites) {
    autograd.impl(
        name,
        torch::CppFunction::makeFromBoxedFunctor(
            std::make_unique<CompositeKernel>(find_operator(name).schema())));
  }
}

} // namespace tandem::sim
