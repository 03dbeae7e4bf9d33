#include "cpu_kernel.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "generator.h"
#include "runtime.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

using c10::IValue;

// The kernels of the CPU call others on their aliases; neither autograd nor
// the CPU's autocast has a part in that.
const c10::DispatchKeySet kAboveKernels =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView |
    c10::autocast_dispatch_keyset;

/// Puts aliases into the stack's values, one argument at a time.
class ArgumentVisitor {
 public:
  ArgumentVisitor(const OperatorSignature& signature, AliasMap& aliases)
      : aliases_(aliases), devices_(signature.name) {}

  const CallDevices& devices() const {
    return devices_;
  }

  void visit(ArgumentKind kind, Access access, IValue& value) {
    switch (kind) {
      case ArgumentKind::kTensor:
        if (value.isTensor()) {
          value = alias(value.toTensor(), access);
        }
        break;
      case ArgumentKind::kTensorList:
        if (value.isTensorList()) {
          value = alias_list(value.toTensorVector(), access);
        }
        break;
      case ArgumentKind::kOptionalTensorList:
        if (value.isList()) {
          value = alias_list(value.toOptionalTensorList(), access);
        }
        break;
      case ArgumentKind::kDevice:
        if (value.isDevice() && value.toDevice().is_privateuseone()) {
          devices_.see(value.toDevice());
          value = at::Device(at::kCPU);
        }
        break;
      case ArgumentKind::kGenerator:
      case ArgumentKind::kOther:
        break;
    }
  }

 private:
  at::Tensor alias(const at::Tensor& tensor, Access access) {
    devices_.see(tensor);
    return aliases_.to_cpu(tensor, access);
  }

  c10::List<at::Tensor> alias_list(
      const std::vector<at::Tensor>& tensors,
      Access access) {
    c10::List<at::Tensor> list;
    list.reserve(tensors.size());
    for (const auto& tensor : tensors) {
      list.push_back(alias(tensor, access));
    }
    return list;
  }

  c10::List<std::optional<at::Tensor>> alias_list(
      const c10::List<std::optional<at::Tensor>>& tensors,
      Access access) {
    c10::List<std::optional<at::Tensor>> list;
    list.reserve(tensors.size());
    for (const std::optional<at::Tensor> tensor : tensors) {
      list.push_back(
          tensor ? std::make_optional(alias(*tensor, access)) : std::nullopt);
    }
    return list;
  }

  AliasMap& aliases_;
  CallDevices devices_;
};

void choose_generator(at::Device device, IValue& value) {
  value = cpu_generator(
      value.isNone() ? Runtime::get().device(device.index()).generator
                     : value.toGenerator());
}

} // namespace

void CallDevices::see(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return;
  }
  if (tensor.is_privateuseone()) {
    const auto index = tensor.device().index();
    TORCH_CHECK(
        index_ < 0 || index_ == index,
        "Expected all tensors to be on the same device, but found at least two "
        "devices, ",
        device(),
        " and ",
        tensor.device(),
        "! (when calling ",
        operator_name_,
        ")");
    index_ = index;
    return;
  }
  TORCH_CHECK(
      tensor.is_cpu(),
      "Expected all tensors to be on the same device, but found one on ",
      tensor.device(),
      " (when calling ",
      operator_name_,
      " for sim)");
  cpu_tensor_ |= tensor.dim() > 0;
}

void CallDevices::see(at::Device device) {
  if (index_ < 0 && device.has_index()) {
    index_ = device.index();
  }
}

void CallDevices::refuse_cpu_tensors() const {
  TORCH_CHECK(
      !cpu_tensor_ || index_ < 0,
      "Expected all tensors to be on the same device, but found at least two "
      "devices, ",
      device(),
      " and cpu! (when calling ",
      operator_name_,
      ")");
}

at::Device CallDevices::device() const {
  return {at::kPrivateUse1, index_ < 0 ? current_device() : index_};
}

at::Device arguments_to_cpu(
    const OperatorSignature& signature,
    AliasMap& aliases,
    torch::jit::Stack& stack) {
  const auto count = signature.arguments.size();
  IValue* const arguments = stack.data() + (stack.size() - count);
  ArgumentVisitor visitor(signature, aliases);
  for (size_t i = 0; i < count; ++i) {
    visitor.visit(
        signature.arguments[i].kind,
        signature.access(i, arguments),
        arguments[i]);
  }
  if (!signature.takes_cpu_tensors) {
    visitor.devices().refuse_cpu_tensors();
  }
  const auto device = visitor.devices().device();
  for (size_t i = 0; i < count; ++i) {
    if (signature.arguments[i].kind == ArgumentKind::kGenerator) {
      choose_generator(device, arguments[i]);
    }
  }
  if (auto* const hazards = active_hazards()) {
    hazards->add_work(
        current_stream_of(device.index()),
        signature.name,
        aliases.argument_uses());
  }
  return device;
}

void results_to_device(
    const OperatorSignature& signature,
    AliasMap& aliases,
    at::Device device,
    torch::jit::Stack& stack) {
  // Sparse tensors take the current device.
  const c10::DeviceGuard guard(device);
  aliases.write_back(device);
  for (auto value = stack.end() - static_cast<int64_t>(signature.num_results);
       value != stack.end();
       ++value) {
    if (value->isTensor()) {
      *value = aliases.to_device(value->toTensor(), device);
    } else if (value->isTensorList()) {
      auto list = value->toTensorList();
      for (size_t i = 0; i < list.size(); ++i) {
        list.set(i, aliases.to_device(list.get(i), device));
      }
    }
  }
  if (auto* const hazards = active_hazards()) {
    const auto stream = current_stream_of(device.index());
    hazards->add_results(stream, signature.name, aliases.result_uses());
    if (signature.returns_number) {
      hazards->host_wait_for(stream);
    }
  }
}

void run_cpu_kernel(
    const OperatorSignature& signature,
    c10::DispatchKey key,
    const c10::OperatorHandle& op,
    torch::jit::Stack& stack) {
  AliasMap aliases;
  const auto device = arguments_to_cpu(signature, aliases, stack);
  auto& state = Runtime::get().device(device.index());
  {
    std::optional<LendState> lend;
    if (signature.draws_unasked(stack)) {
      lend.emplace(cpu_generator(state.generator));
    }
    const CountOn count(state.memory);
    const c10::impl::ExcludeDispatchKeyGuard exclude(kAboveKernels);
    const auto start = Clock::now();
    op.redispatchBoxed(c10::DispatchKeySet(key), &stack);
    state.counter.add(Clock::now() - start);
  }
  results_to_device(signature, aliases, device, stack);
}

void run_unknown_operator(
    const c10::OperatorHandle& op,
    c10::DispatchKeySet /*keys*/,
    torch::jit::Stack* stack) {
  const OperatorSignature signature(op.schema());
  run_cpu_kernel(signature, c10::DispatchKey::CPU, op, *stack);
}

} // namespace tandem::sim
