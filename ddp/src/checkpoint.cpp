#include <tandem/ddp/checkpoint.h>

#include <algorithm>
#include <iterator>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <tandem/core/errors.h>
#include <tandem/core/named_tensors.h>
#include <tandem/core/statistics_group.h>
#include <tandem/core/thread_state.h>

namespace tandem::ddp::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The distinct devices of `tensors` that have random numbers of their own.
std::vector<at::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Device> devices;
  for (const auto& tensor : tensors) {
    if (tensor.defined() && !tensor.device().is_cpu() &&
        std::find(devices.begin(), devices.end(), tensor.device()) ==
            devices.end()) {
      devices.push_back(tensor.device());
    }
  }
  return devices;
}

/// The states of generators at one moment.
class RandomState {
 public:
  explicit RandomState(const std::vector<at::Device>& devices) {
    add(at::detail::getDefaultCPUGenerator());
    for (const auto device : devices) {
      if (device.is_cuda()) {
        add(at::globalContext().defaultGenerator(device));
      }
    }
  }

  void restore() {
    for (auto& [generator, state] : states_) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(state);
    }
  }

 private:
  void add(at::Generator generator) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto state = generator.get_state();
    states_.emplace_back(std::move(generator), std::move(state));
  }

  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

/// Puts something back at the end of a scope.
template <typename State>
class RestoreAtEnd {
 public:
  explicit RestoreAtEnd(State state) : state_(std::move(state)) {}
  ~RestoreAtEnd() {
    state_.restore();
  }
  RestoreAtEnd(const RestoreAtEnd&) = delete;
  RestoreAtEnd& operator=(const RestoreAtEnd&) = delete;

 private:
  State state_;
};

/// The buffers of a module as they are.
class BufferState {
 public:
  explicit BufferState(const torch::nn::Module& module)
      : buffers_(unique_buffers(module)) {
    for (const auto& buffer : buffers_) {
      values_.push_back(buffer.tensor.detach().clone());
    }
  }

  void restore() {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].tensor.copy_(values_[i]);
    }
  }

 private:
  std::vector<NamedTensor> buffers_;
  std::vector<at::Tensor> values_;
};

/// All that a second forward needs.
struct Recomputation : torch::CustomClassHolder {
  Recomputation(
      std::shared_ptr<torch::nn::Module> called,
      const std::vector<at::Tensor>& inputs,
      Recompute function)
      : module(std::move(called)),
        num_inputs(inputs.size()),
        run(std::move(function)),
        threads(devices_of(inputs)),
        random(devices_of(inputs)) {
    if (auto* group = StatisticsScope::current()) {
      statistics = group->for_recomputation();
    }
  }

  std::shared_ptr<torch::nn::Module> module;
  size_t num_inputs;
  Recompute run;
  ThreadState threads;
  RandomState random;
  std::shared_ptr<StatisticsGroup> statistics;
};

/// Copies of the tensors that start a graph of their own.
std::vector<at::Tensor> as_leaves(const variable_list& saved, size_t count) {
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < count; ++i) {
    leaves.push_back(
        saved[i].defined()
            ? saved[i].detach().set_requires_grad(saved[i].requires_grad())
            : at::Tensor());
  }
  return leaves;
}

/// Gradients of `outputs` for those of `targets` that require grad; undefined
/// for the others and where no path leads.
variable_list gradients_for(
    const std::vector<at::Tensor>& outputs,
    const variable_list& output_grads,
    const std::vector<at::Tensor>& targets) {
  variable_list reached;
  variable_list seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && outputs[i].requires_grad() &&
        output_grads[i].defined()) {
      reached.push_back(outputs[i]);
      seeds.push_back(output_grads[i]);
    }
  }
  variable_list wanted;
  std::copy_if(
      targets.begin(),
      targets.end(),
      std::back_inserter(wanted),
      [](const at::Tensor& tensor) {
        return tensor.defined() && tensor.requires_grad();
      });
  variable_list found(wanted.size());
  if (!reached.empty() && !wanted.empty()) {
    found = torch::autograd::grad(
        reached,
        wanted,
        seeds,
        /*retain_graph=*/false,
        /*create_graph=*/false,
        /*allow_unused=*/true);
  }
  variable_list result(targets.size());
  size_t next = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].defined() && targets[i].requires_grad()) {
      result[i] = found[next++];
    }
  }
  return result;
}

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
  /// `tensors`: the inputs, then the module's parameters.
  static variable_list forward(
      AutogradContext* context,
      const c10::intrusive_ptr<Recomputation>& recomputation,
      at::TensorList tensors) {
    context->saved_data["recomputation"] =
        c10::IValue::make_capsule(recomputation);
    context->save_for_backward(tensors.vec());
    context->set_materialize_grads(false);
    return recomputation->run(
        {tensors.begin(),
         tensors.begin() +
             static_cast<std::ptrdiff_t>(recomputation->num_inputs)});
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& output_grads) {
    if (at::GradMode::is_enabled()) {
      throw ConfigError(
          "checkpoint: expected a backward without create_graph, got one with "
          "it. Call the module without a checkpoint where gradients are to be "
          "differentiated");
    }
    const auto recomputation =
        c10::static_intrusive_pointer_cast<Recomputation>(
            context->saved_data["recomputation"].toCapsule());
    const auto saved = context->get_saved_variables();
    auto targets = as_leaves(saved, recomputation->num_inputs);
    const auto inputs = targets;
    targets.insert(
        targets.end(),
        saved.begin() + static_cast<std::ptrdiff_t>(inputs.size()),
        saved.end());

    const RestoreAtEnd<BufferState> buffers{
        BufferState(*recomputation->module)};
    const auto outputs = recompute(*recomputation, inputs);
    auto gradients = gradients_for(outputs, output_grads, targets);
    gradients.insert(gradients.begin(), at::Tensor()); // the recomputation's
    return gradients;
  }

  static std::vector<at::Tensor> recompute(
      Recomputation& recomputation,
      const std::vector<at::Tensor>& inputs) {
    const ThreadStateGuard threads(recomputation.threads, 0);
    const at::AutoGradMode grad_mode(true);
    const StatisticsScope scope(recomputation.statistics.get());
    const RestoreAtEnd<RandomState> random{RandomState(devices_of(inputs))};
    recomputation.random.restore();
    return recomputation.run(inputs);
  }
};

} // namespace

std::vector<at::Tensor> checkpoint_tensors(
    const std::shared_ptr<torch::nn::Module>& module,
    std::vector<at::Tensor> inputs,
    Recompute recompute) {
  if (!at::GradMode::is_enabled()) {
    return recompute(inputs);
  }
  const auto recomputation =
      c10::make_intrusive<Recomputation>(module, inputs, std::move(recompute));
  auto tensors = std::move(inputs);
  for (const auto& parameter : unique_parameters(*module)) {
    tensors.push_back(parameter.tensor);
  }
  // Only as this type are they taken for the function's inputs.
  const at::TensorList list = tensors;
  return CheckpointFunction::apply(recomputation, list);
}

} // namespace tandem::ddp::detail
