#include "cpu_composite.h"

#include <array>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <tandem/core/detail/torch_compat.h>
#include <tandem/core/errors.h>

#include "cpu_kernel.h"
#include "generator.h"
#include "runtime.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

using torch::autograd::Node;
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

/// What the CPU's composite recorded, as one node of the device's graph.
class CompositeBackward final : public Node {
 public:
  std::string name() const override {
    return "SimCompositeBackward";
  }

  variable_list apply(variable_list&& gradients) override {
    TORCH_CHECK(
        !at::GradMode::is_enabled(),
        "recurrent layer or attention on ",
        device,
        ": expected a backward without create_graph, got one with it. Compute "
        "its second derivatives on the CPU");
    AliasMap aliases;
    variable_list reached;
    variable_list reached_gradients;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) {
        reached.push_back(results.at(i));
        reached_gradients.push_back(
            aliases.to_cpu(gradients[i], /*written=*/false));
      }
    }
    if (reached.empty()) {
      return variable_list(leaves.size());
    }
    variable_list leaf_gradients;
    {
      const CountOn count(Runtime::get().device(device.index()).memory);
      leaf_gradients = torch::autograd::grad(
          reached,
          leaves,
          reached_gradients,
          /*retain_graph=*/true,
          /*create_graph=*/false,
          /*allow_unused=*/true);
    }
    for (auto& gradient : leaf_gradients) {
      gradient = aliases.to_device(gradient, device);
    }
    return leaf_gradients;
  }

  void release_variables() override {
    leaves.clear();
    results.clear();
    kept.clear();
  }

  at::Device device{at::kCPU};
  /// Of the inner graph.
  variable_list leaves;
  variable_list results;
  /// What owns the bytes of tensors that the inner graph has saved.
  std::vector<c10::Storage> kept;
};

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

/// In-place changes of the one are seen by the other.
void share_version(const at::Tensor& from, const at::Tensor& to) {
  to.unsafeGetTensorImpl()->set_version_counter(
      torch::autograd::impl::version_counter(from));
}

/// Makes the aliases of tensors that require grad the inner graph's leaves and
/// leads the node's edges to those tensors.
void connect_inputs(
    CompositeBackward& node,
    const variable_list& tensors,
    const variable_list& aliases) {
  torch::autograd::edge_list edges;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_privateuseone()) {
      node.kept.push_back(tensors[i].storage());
    }
    if (!tensors[i].requires_grad() || aliases[i].requires_grad()) {
      continue;
    }
    share_version(tensors[i], aliases[i]);
    aliases[i].set_requires_grad(true);
    node.leaves.push_back(aliases[i]);
    edges.push_back(torch::autograd::impl::gradient_edge(tensors[i]));
  }
  node.set_next_edges(std::move(edges));
}

void connect_outputs(
    const detail::NodePtr& node,
    CompositeBackward& composite,
    const variable_list& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    composite.kept.push_back(outputs[i].storage());
    share_version(composite.results[i], outputs[i]);
    torch::autograd::set_history(outputs[i], node);
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
    const auto node = detail::make_node<CompositeBackward>();
    AliasMap aliases;
    node->device = arguments_to_cpu(signature_, aliases, stack);
    connect_inputs(
        *node,
        tensors,
        last_tensors(stack, signature_.arguments.size()));
    auto& state = Runtime::get().device(node->device.index());
    {
      std::optional<LendState> lend;
      if (signature_.draws_unasked(stack)) {
        lend.emplace(cpu_generator(state.generator));
      }
      const CountOn count(state.memory);
      op.callBoxed(&stack);
    }
    node->results = last_tensors(stack, signature_.num_results);
    results_to_device(signature_, aliases, node->device, stack);
    connect_outputs(node, *node, last_tensors(stack, signature_.num_results));
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
