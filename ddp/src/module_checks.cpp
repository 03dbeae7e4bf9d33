#include "module_checks.h"

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "rank_text.h"

namespace tandem::detail {

namespace {

void check_positive_bytes(
    const char* option,
    int64_t bytes,
    const comm::ProcessGroup& group) {
  if (bytes < 1) {
    throw ConfigError(fmt::format(
        "{} option {}: expected at least 1 byte, got {}",
        rank_tag(group),
        option,
        bytes));
  }
}

void check_is_on(
    const std::vector<NamedTensor>& tensors,
    const char* kind,
    at::Device device,
    const comm::ProcessGroup& group) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.device() != device) {
      throw ConfigError(fmt::format(
          "{} {} '{}': expected on {}, got {}. Move the module before it is "
          "wrapped, module->to(device), or set the option device",
          rank_tag(group),
          kind,
          name,
          device.str(),
          tensor.device().str()));
    }
  }
}

/// The types that every backend sums; complex ones are sent as pairs.
bool is_reducible(at::ScalarType dtype) {
  switch (at::toRealValueType(dtype)) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
      return true;
    default:
      return false;
  }
}

} // namespace

void check_options(
    const DistributedDataParallelOptions& options,
    const comm::ProcessGroup& group) {
  check_positive_bytes("bucket_cap_bytes", options.bucket_cap_bytes(), group);
  check_positive_bytes(
      "first_bucket_bytes",
      options.first_bucket_bytes(),
      group);
}

void check_tensors(
    const ModuleTensors& tensors,
    at::Device device,
    const comm::ProcessGroup& group) {
  if (tensors.trained.empty()) {
    throw ConfigError(fmt::format(
        "{} module: expected at least one parameter that requires grad, got "
        "none of {}. Without one there is nothing to average: call the module "
        "without a wrapper",
        rank_tag(group),
        tensors.parameters.size()));
  }
  check_is_on(tensors.parameters, "parameter", device, group);
  check_is_on(tensors.buffers, "buffer", device, group);
  for (const auto& [name, tensor] : tensors.trained) {
    if (!is_reducible(tensor.scalar_type())) {
      throw ConfigError(fmt::format(
          "{} parameter '{}': expected a type that the backend {} can sum "
          "(Float, Double, Half, BFloat16 or complex), got {}. Convert or "
          "freeze it before the module is wrapped",
          rank_tag(group),
          name,
          group.backend_name(device.type()),
          at::toString(tensor.scalar_type())));
    }
  }
}

} // namespace tandem::detail
