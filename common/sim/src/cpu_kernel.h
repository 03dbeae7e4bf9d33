#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "alias_map.h"
#include "operator_signature.h"

namespace tandem::sim {

// Note [Kernels of the CPU]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// An operator on device tensors runs the CPU's kernel on CPU tensors over the
// same bytes. Arguments get such aliases (`AliasMap`); a device argument
// becomes the CPU; a generator becomes the CPU generator inside it. While the
// kernel runs, what it allocates counts on the device (`CountOn`), so that its
// results can be adopted without a copy. Afterwards aliases that were written
// to are carried back and results become device tensors: an argument itself, a
// view of an argument's storage, or a new storage.
//
// The kernel is registered for every aten operator that has a CPU kernel, not
// only as the fallback, since an operator's composite kernel would otherwise
// come before the fallback and compute in another order than the CPU does.

/// The devices of one call's arguments.
class CallDevices {
 public:
  explicit CallDevices(const std::string& operator_name)
      : operator_name_(operator_name) {}

  /// **Throws** `c10::Error` as CUDA does if tensors are on several devices.
  void see(const at::Tensor& tensor);
  /// A device argument decides where there is no tensor.
  void see(at::Device device);
  /// **Throws** likewise if tensors of the CPU stand beside a device's, other
  /// than those of no dimension.
  void refuse_cpu_tensors() const;
  /// That of the arguments, else the current one.
  at::Device device() const;

 private:
  const std::string& operator_name_;
  int8_t index_ = -1;
  bool cpu_tensor_ = false;
};

/// Puts the CPU's counterparts in the place of the last arguments on `stack`.
/// Returns the device that the call is for. **Throws** as `CallDevices`; in
/// hazard mode, `HazardError`.
at::Device arguments_to_cpu(
    const OperatorSignature& signature,
    AliasMap& aliases,
    torch::jit::Stack& stack);

/// The way back, for the results at the end of `stack`; whoever reads a number
/// waits.
void results_to_device(
    const OperatorSignature& signature,
    AliasMap& aliases,
    at::Device device,
    torch::jit::Stack& stack);

/// Runs `op`'s kernel for `key`, one of the CPU's, on arguments and results on
/// devices.
void run_cpu_kernel(
    const OperatorSignature& signature,
    c10::DispatchKey key,
    const c10::OperatorHandle& op,
    torch::jit::Stack& stack);

/// The kernel of one operator for devices: that of the CPU for `key`.
class CpuKernel final : public c10::OperatorKernel {
 public:
  CpuKernel(const c10::FunctionSchema& schema, c10::DispatchKey key)
      : signature_(schema), key_(key) {}

  void operator()(
      const c10::OperatorHandle& op,
      c10::DispatchKeySet /*keys*/,
      torch::jit::Stack* stack) {
    run_cpu_kernel(signature_, key_, op, *stack);
  }

 private:
  OperatorSignature signature_;
  c10::DispatchKey key_;
};

/// For operators that are registered after `init`.
void run_unknown_operator(
    const c10::OperatorHandle& op,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack);

} // namespace tandem::sim
