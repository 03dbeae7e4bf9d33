#include "shard_agreement.h"

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/lbfgs.h>

#include <tandem/comm/agreement.h>
#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

namespace tandem::detail {

namespace {

using torch::optim::OptimizerParamGroup;

constexpr auto kWho = "zero";

std::string tag_of(const comm::ProcessGroup& group) {
  return comm::rank_tag(kWho, group.rank(), group.size());
}

std::string name_of(size_t index, size_t group_index) {
  return fmt::format("parameter {} of group {}", index, group_index);
}

std::string kind_of(const at::Tensor& tensor) {
  return fmt::format(
      "{} on {}",
      at::toString(tensor.scalar_type()),
      c10::DeviceTypeName(tensor.device().type(), /*lower_case=*/true));
}

void check_parameter(
    const std::string& tag,
    const std::string& name,
    const at::Tensor& parameter,
    const at::Tensor& first) {
  if (!parameter.defined()) {
    throw ConfigError(fmt::format(
        "{} {}: expected a tensor, got an undefined one",
        tag,
        name));
  }
  if (parameter.layout() != at::kStrided) {
    throw ShapeError(fmt::format(
        "{} {}: expected a dense tensor, got a sparse one. Give it to a plain "
        "optimizer",
        tag,
        name));
  }
  if (kind_of(parameter) != kind_of(first)) {
    throw ShapeError(fmt::format(
        "{} {}: expected {} as the first parameter, got {}. Make an optimizer "
        "for each dtype and kind of device",
        tag,
        name,
        kind_of(first),
        kind_of(parameter)));
  }
}

void check_parameters(
    const std::string& tag,
    const GroupedParameters& parameters) {
  const at::Tensor* first = nullptr;
  for (size_t i = 0; i < parameters.size(); ++i) {
    for (size_t j = 0; j < parameters[i].size(); ++j) {
      const auto& parameter = parameters[i][j];
      first = first == nullptr ? &parameter : first;
      check_parameter(tag, name_of(j, i), parameter, *first);
    }
  }
  if (first == nullptr) {
    throw ConfigError(fmt::format(
        "{} parameters: expected at least one, got none. Check that the model "
        "has registered its parameters",
        tag));
  }
}

std::vector<comm::Statement> statements_about(
    const GroupedParameters& parameters) {
  std::vector<comm::Statement> statements{
      {"number of parameter groups", fmt::to_string(parameters.size())}};
  for (size_t i = 0; i < parameters.size(); ++i) {
    statements.push_back(
        {fmt::format("number of parameters of group {}", i),
         fmt::to_string(parameters[i].size())});
    for (size_t j = 0; j < parameters[i].size(); ++j) {
      const auto& parameter = parameters[i][j];
      statements.push_back(
          {name_of(j, i),
           fmt::format(
               "{} [{}]",
               at::toString(parameter.scalar_type()),
               fmt::join(parameter.sizes(), ", "))});
    }
  }
  return statements;
}

/// The same groups without parameters: such an optimizer has no state.
std::vector<OptimizerParamGroup> without_parameters(
    const std::vector<OptimizerParamGroup>& param_groups) {
  std::vector<OptimizerParamGroup> empty;
  for (const auto& param_group : param_groups) {
    auto copy = param_group;
    copy.params().clear();
    empty.push_back(std::move(copy));
  }
  return empty;
}

std::unique_ptr<torch::optim::Optimizer> make_checked(
    const std::string& tag,
    const std::vector<OptimizerParamGroup>& param_groups,
    const OptimizerFactory& make) {
  if (!make) {
    throw ConfigError(fmt::format(
        "{} optimizer factory: expected a function, got an empty one",
        tag));
  }
  auto optimizer = make(without_parameters(param_groups));
  if (!optimizer) {
    throw ConfigError(fmt::format(
        "{} optimizer factory: expected an optimizer, got null",
        tag));
  }
  const auto& defaults = optimizer->defaults();
  if (dynamic_cast<const torch::optim::LBFGSOptions*>(&defaults) != nullptr) {
    throw ConfigError(fmt::format(
        "{} optimizer: expected one that treats each parameter by itself, got "
        "LBFGS. Use it unsharded",
        tag));
  }
  return optimizer;
}

template <typename Check>
void check_or_report(comm::ProcessGroup& group, const Check& check) {
  try {
    check();
  } catch (...) {
    comm::report_failure(group, kWho, message_of(std::current_exception()));
    throw;
  }
}

} // namespace

GroupedParameters parameters_of(
    const std::vector<OptimizerParamGroup>& param_groups) {
  GroupedParameters parameters;
  parameters.reserve(param_groups.size());
  for (const auto& param_group : param_groups) {
    parameters.push_back(param_group.params());
  }
  return parameters;
}

void agree_on_parameters(
    comm::ProcessGroup& group,
    const GroupedParameters& parameters) {
  check_or_report(group, [&] { check_parameters(tag_of(group), parameters); });
  comm::agree_or_throw(group, kWho, statements_about(parameters));
}

std::unique_ptr<torch::optim::Optimizer> agree_on_optimizer(
    comm::ProcessGroup& group,
    const std::vector<OptimizerParamGroup>& param_groups,
    const OptimizerFactory& make,
    int64_t overlap_chunk_bytes) {
  const auto parameters = parameters_of(param_groups);
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  check_or_report(group, [&] {
    check_parameters(tag_of(group), parameters);
    optimizer = make_checked(tag_of(group), param_groups, make);
  });
  auto statements = statements_about(parameters);
  statements.push_back(
      {"option overlap_chunk_bytes", fmt::to_string(overlap_chunk_bytes)});
  comm::agree_or_throw(group, kWho, statements);
  return optimizer;
}

} // namespace tandem::detail
