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

/// What an operator does to the memory of an argument, the more the later.
enum class Access : uint8_t {
  /// Makes a view of it.
  kNone,
  kRead,
  /// Changes it, in place or as `out=`; a normalisation in training its running
  /// statistics.
  kWrite,
};

/// What the way to a CPU kernel must know of an operator.
struct OperatorSignature {
  struct Argument {
    ArgumentKind kind;
    Access access;
    bool is_running_statistic;
  };

  explicit OperatorSignature(const c10::FunctionSchema& schema);

  /// Whether the call with the last values of `stack` draws random numbers
  /// without being given a generator.
  bool draws_unasked(const torch::jit::Stack& stack) const;

  /// What the call with these arguments does to one of them.
  Access access(size_t argument, const c10::IValue* values) const;

  std::string name;
  c10::SmallVector<Argument, 12> arguments;
  size_t num_results;
  /// A number is read from memory, for which the host waits.
  bool returns_number;
  /// Tensors of the CPU may stand beside those of a device, as on CUDA.
  bool takes_cpu_tensors;
  /// Where a dropout without an argument for the generator has its probability
  /// and its flag.
  std::optional<size_t> dropout_argument;
  std::optional<size_t> train_argument;

 private:
  bool trains(const c10::IValue* values) const;
};

} // namespace tandem::sim
