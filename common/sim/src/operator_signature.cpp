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

} // namespace

OperatorSignature::OperatorSignature(const c10::FunctionSchema& schema)
    : name(schema.name()),
      num_results(schema.returns().size()),
      takes_cpu_tensors(contains(kTakesCpuTensors, schema.name())),
      dropout_argument(dropout_of(schema)),
      train_argument(argument_named(schema, "train")) {
  for (const auto& argument : schema.arguments()) {
    const auto* alias = argument.alias_info();
    arguments.push_back(
        {kind_of(argument), alias != nullptr && alias->isWrite()});
  }
}

bool OperatorSignature::draws_unasked(const torch::jit::Stack& stack) const {
  if (!dropout_argument) {
    return false;
  }
  const auto* const values = stack.data() + (stack.size() - arguments.size());
  const bool trains = !train_argument || values[*train_argument].isNone() ||
      values[*train_argument].toBool();
  return trains && values[*dropout_argument].toDouble() > 0;
}

} // namespace tandem::sim
