#pragma once

#include <optional>
#include <string>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

namespace tandem::sim {

enum class ArgumentKind : uint8_t {
  kOther,
  kTensor,
  kTensorList,
  kOptionalTensorList,
  kDevice,
  kGenerator,
};

/// What the way to a CPU kernel must know of an operator.
struct OperatorSignature {
  struct Argument {
    ArgumentKind kind;
    /// The operator writes to it: in place or `out=`.
    bool written;
  };

  explicit OperatorSignature(const c10::FunctionSchema& schema);

  /// Whether the call with the last values of `stack` draws random numbers
  /// without being given a generator.
  bool draws_unasked(const torch::jit::Stack& stack) const;

  std::string name;
  c10::SmallVector<Argument, 12> arguments;
  size_t num_results;
  /// Tensors of the CPU may stand beside those of a device, as on CUDA.
  bool takes_cpu_tensors;
  /// Where a dropout without an argument for the generator has its probability
  /// and its flag.
  std::optional<size_t> dropout_argument;
  std::optional<size_t> train_argument;
};

} // namespace tandem::sim
