#include "module_agreement.h"

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/comm/agreement.h>
#include <tandem/core/errors.h>

namespace tandem::detail {

namespace {

using comm::Statement;

constexpr auto kWho = "ddp";

std::string layout_text(const at::Tensor& tensor) {
  return tensor.is_contiguous()
      ? std::string("contiguous")
      : fmt::format("strides [{}]", fmt::join(tensor.strides(), ", "));
}

Statement tensor_statement(const char* kind, const NamedTensor& named) {
  const auto& tensor = named.tensor;
  return {
      fmt::format("{} '{}'", kind, named.name),
      fmt::format(
          "{} [{}] {}{}",
          at::toString(tensor.scalar_type()),
          fmt::join(tensor.sizes(), ", "),
          layout_text(tensor),
          tensor.requires_grad() ? " requires_grad" : "")};
}

Statement option_statement(const char* name, int64_t value) {
  return {fmt::format("option {}", name), fmt::to_string(value)};
}

Statement option_statement(const char* name, bool value) {
  return {fmt::format("option {}", name), fmt::to_string(value)};
}

std::vector<Statement> statements_about(
    const char* kind,
    const std::vector<NamedTensor>& tensors) {
  std::vector<Statement> statements;
  statements.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    statements.push_back(tensor_statement(kind, tensor));
  }
  return statements;
}

std::vector<Statement> role_statements(const ModuleTensors& tensors) {
  std::vector<Statement> statements;
  for (size_t i = 0; i < tensors.trained.size(); ++i) {
    if (tensors.roles[i] != GradientRole::kBucket) {
      statements.push_back(
          {fmt::format("gradient of '{}'", tensors.trained[i].name),
           tensors.roles[i] == GradientRole::kSparse ? "sparse" : "delayed"});
    }
  }
  return statements;
}

std::vector<Statement> all_statements(
    const ModuleTensors& tensors,
    at::Device device,
    const DistributedDataParallelOptions& options) {
  std::vector<Statement> statements{
      {"option device", c10::DeviceTypeName(device.type(), true)},
      option_statement("bucket_cap_bytes", options.bucket_cap_bytes()),
      option_statement("first_bucket_bytes", options.first_bucket_bytes()),
      option_statement(
          "gradient_as_bucket_view",
          options.gradient_as_bucket_view()),
      {"option buffer_policy", buffer_policy_name(options.buffer_policy())},
      option_statement(
          "find_unused_parameters",
          options.find_unused_parameters()),
      option_statement("static_graph", options.static_graph()),
      option_statement("init_sync", options.init_sync()),
      option_statement(
          "skip_all_reduce_unused_params",
          options.skip_all_reduce_unused_params()),
      {"option reduce_op",
       options.reduce_op() == comm::ReduceOp::kSum ? "sum" : "mean"},
      {"option gradient_predivide_factor",
       options.gradient_predivide_factor()
           ? fmt::to_string(*options.gradient_predivide_factor())
           : "none"},
      option_statement("reduce_in_float", options.reduce_in_float()),
      option_statement(
          "divergence_check_every",
          options.divergence_check_every()),
      {"number of parameters", fmt::to_string(tensors.parameters.size())},
      {"number of buffers", fmt::to_string(tensors.buffers.size())},
      {"number of SyncBatchNorm layers",
       fmt::to_string(tensors.num_sync_batch_norms)}};
  for (const auto& more :
       {statements_about("parameter", tensors.parameters),
        statements_about("buffer", tensors.buffers),
        role_statements(tensors)}) {
    statements.insert(statements.end(), more.begin(), more.end());
  }
  return statements;
}

} // namespace

void agree_on_module(
    comm::ProcessGroup& group,
    const ModuleTensors& tensors,
    at::Device device,
    const DistributedDataParallelOptions& options) {
  try {
    comm::agree_or_throw(group, kWho, all_statements(tensors, device, options));
  } catch (const ConfigError& difference) {
    // All ranks are here. Where only the numbers differ, the lists tell by what.
    const std::string message = difference.what_without_backtrace();
    try {
      comm::agree_or_throw(
          group,
          kWho,
          statements_about("parameter", tensors.parameters));
      comm::agree_or_throw(
          group,
          kWho,
          statements_about("buffer", tensors.buffers));
    } catch (const ConfigError& detail) {
      const std::string more = detail.what_without_backtrace();
      throw ConfigError(message == more ? message : message + "\n" + more);
    }
    throw;
  }
}

void report_unfit(comm::ProcessGroup& group, const std::string& message) {
  comm::report_failure(group, kWho, message);
}

} // namespace tandem::detail
