#include "operator_signature.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem::sim {

namespace {

template <size_t N>
bool contains(
    const std::array<std::string_view, N>& names,
    const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Indices, lengths and batch sizes may stay on the CPU.
constexpr std::array<std::string_view, 12> kTakesCpuTensors{
    "aten::index",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::_unsafe_index",
    "aten::_unsafe_index_put",
    "aten::_ctc_loss",
    "aten::_ctc_loss_backward",
    "aten::lstm",
    "aten::gru",
    "aten::rnn_tanh",
    "aten::rnn_relu",
};

c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

ArgumentKind list_kind(const c10::ListType& list) {
  const auto& element = list.getElementType();
  if (element->kind() == c10::TypeKind::TensorType) {
    return ArgumentKind::kTensorList;
  }
  const bool of_tensors =
      without_optional(element)->kind() == c10::TypeKind::TensorType;
  return of_tensors ? ArgumentKind::kOptionalTensorList : ArgumentKind::kOther;
}

ArgumentKind kind_of(const c10::Argument& argument) {
  const auto type = without_optional(argument.type());
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return ArgumentKind::kTensor;
    case c10::TypeKind::GeneratorType:
      return ArgumentKind::kGenerator;
    case c10::TypeKind::DeviceObjType:
      return ArgumentKind::kDevice;
    case c10::TypeKind::ListType:
      return list_kind(type->expectRef<c10::ListType>());
    default:
      return ArgumentKind::kOther;
  }
}

std::optional<size_t> argument_named(
    const c10::FunctionSchema& schema,
    const std::string& name) {
  const auto index = schema.argumentIndexWithName(name);
  return index ? std::make_optional(static_cast<size_t>(*index)) : std::nullopt;
}

/// Recurrent layers, attention and native_dropout.
std::optional<size_t> dropout_of(const c10::FunctionSchema& schema) {
  if (schema.name() == "aten::native_dropout") {
    return argument_named(schema, "p");
  }
  const auto probability = argument_named(schema, "dropout");
  return probability ? probability : argument_named(schema, "dropout_p");
}

/// Absent where an operator always works as in training.
std::optional<size_t> train_of(const c10::FunctionSchema& schema) {
  const auto train = argument_named(schema, "train");
  return train ? train : argument_named(schema, "training");
}

Access access_of(const c10::Argument& argument) {
  const auto* const alias = argument.alias_info();
  if (alias == nullptr) {
    return Access::kRead;
  }
  return alias->isWrite() ? Access::kWrite : Access::kNone;
}

// Written in training, though not every schema says so.
bool is_running_statistic(
    const c10::FunctionSchema& schema,
    const c10::Argument& argument) {
  return (argument.name() == "running_mean" ||
          argument.name() == "running_var") &&
      schema.name().find("backward") == std::string::npos;
}

bool returns_a_number(const c10::FunctionSchema& schema) {
  return std::any_of(
      schema.returns().begin(),
      schema.returns().end(),
      [](const c10::Argument& result) {
        const auto kind = result.type()->kind();
        return kind == c10::TypeKind::NumberType ||
            kind == c10::TypeKind::BoolType;
      });
}

} // namespace

OperatorSignature::OperatorSignature(const c10::FunctionSchema& schema)
    : name(schema.name()),
      num_results(schema.returns().size()),
      returns_number(returns_a_number(schema)),
      takes_cpu_tensors(contains(kTakesCpuTensors, schema.name())),
      dropout_argument(dropout_of(schema)),
      train_argument(train_of(schema)) {
  for (const auto& argument : schema.arguments()) {
    arguments.push_back(
        {kind_of(argument),
         access_of(argument),
         is_running_statistic(schema, argument)});
  }
}

bool OperatorSignature::trains(const c10::IValue* values) const {
  return !train_argument || values[*train_argument].isNone() ||
      values[*train_argument].toBool();
}

Access OperatorSignature::access(size_t argument, const c10::IValue* values)
    const {
  const auto& known = arguments[argument];
  return known.is_running_statistic && trains(values) ? Access::kWrite
                                                      : known.access;
}

bool OperatorSignature::draws_unasked(const torch::jit::Stack& stack) const {
  if (!dropout_argument) {
    return false;
  }
  const auto* const values = stack.data() + (stack.size() - arguments.size());
  return trains(values) && values[*dropout_argument].toDouble() > 0;
}

} // namespace tandem::sim
