#include "module_checks.h"

#include <algorithm>
#include <cmath>

#include <ATen/MemoryOverlap.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/errors.h>

#include "gradient_hooks.h"
#include "name_patterns.h"
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

void check_device(
    const char* kind,
    const NamedTensor& named,
    at::Device device,
    const comm::ProcessGroup& group) {
  if (named.tensor.device() != device) {
    throw ConfigError(fmt::format(
        "{} {} '{}': expected on {}, got {}. Move the module before it is "
        "wrapped, module->to(device), or set the option device",
        rank_tag(group),
        kind,
        named.name,
        device.str(),
        named.tensor.device().str()));
  }
}

void check_memory(
    const char* kind,
    const NamedTensor& named,
    const comm::ProcessGroup& group) {
  if (at::has_internal_overlap(named.tensor) == at::MemOverlap::Yes) {
    throw ConfigError(fmt::format(
        "{} {} '{}': expected memory of its own for each element, got [{}] "
        "with strides [{}]. Register a copy: tensor.contiguous()",
        rank_tag(group),
        kind,
        named.name,
        fmt::join(named.tensor.sizes(), ", "),
        fmt::join(named.tensor.strides(), ", ")));
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

void check_dtype(const NamedTensor& named, const comm::ProcessGroup& group) {
  const auto dtype = named.tensor.scalar_type();
  if (!is_reducible(dtype)) {
    throw ConfigError(fmt::format(
        "{} parameter '{}': expected a type that the backend {} can sum "
        "(Float, Double, Half, BFloat16 or complex), got {}. Convert or "
        "freeze it before the module is wrapped",
        rank_tag(group),
        named.name,
        group.backend_name(named.tensor.device().type()),
        at::toString(dtype)));
  }
}

void check_trains(
    const ModuleTensors& tensors,
    const comm::ProcessGroup& group) {
  if (!tensors.trained.empty()) {
    return;
  }
  const auto undefined = tensors.undefined.empty()
      ? std::string()
      : fmt::format(
            " and '{}' undefined",
            fmt::join(tensors.undefined, "', '"));
  throw ConfigError(fmt::format(
      "{} module: expected at least one parameter that requires grad, got {} "
      "frozen{}. Without one there is nothing to average: call the module "
      "without a wrapper",
      rank_tag(group),
      tensors.frozen.size(),
      undefined));
}

void check_backend(at::Device device, const comm::ProcessGroup& group) {
  try {
    static_cast<void>(group.backend_name(device.type()));
  } catch (const Error& error) {
    throw ConfigError(fmt::format(
        "{} option device: expected one that the process group serves, got "
        "{} ({})",
        rank_tag(group),
        device.str(),
        error.what_without_backtrace()));
  }
}

void check_reduction(
    const DistributedDataParallelOptions& options,
    const comm::ProcessGroup& group) {
  const auto op = options.reduce_op();
  const auto factor = options.gradient_predivide_factor();
  if (op != comm::ReduceOp::kMean && op != comm::ReduceOp::kSum) {
    throw ConfigError(fmt::format(
        "{} option reduce_op: expected kMean or kSum, got another",
        rank_tag(group)));
  }
  if (factor && !(*factor > 0 && std::isfinite(*factor))) {
    throw ConfigError(fmt::format(
        "{} option gradient_predivide_factor: expected a number above 0, got "
        "{}",
        rank_tag(group),
        *factor));
  }
  if (factor && op == comm::ReduceOp::kSum) {
    throw ConfigError(fmt::format(
        "{} option gradient_predivide_factor: expected with reduce_op kMean, "
        "got kSum, which divides by nothing",
        rank_tag(group)));
  }
  if (options.divergence_check_every() < 0) {
    throw ConfigError(fmt::format(
        "{} option divergence_check_every: expected at least 0, got {}",
        rank_tag(group),
        options.divergence_check_every()));
  }
  if (options.skip_all_reduce_unused_params() &&
      (!options.find_unused_parameters() || options.static_graph())) {
    throw ConfigError(fmt::format(
        "{} option skip_all_reduce_unused_params: expected with "
        "find_unused_parameters and without static_graph, got {}",
        rank_tag(group),
        options.static_graph() ? "static_graph" : "neither"));
  }
}

/// A pattern without a match is a misspelt name.
void check_patterns(
    const char* option,
    const std::vector<std::string>& patterns,
    const std::vector<NamedTensor>& tensors,
    const char* expected,
    const comm::ProcessGroup& group) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const auto& named : tensors) {
    names.push_back(named.name);
  }
  const auto missed = unmatched(patterns, names);
  if (!missed.empty()) {
    throw ConfigError(fmt::format(
        "{} option {}: expected the name of {}, or a pattern of such, got "
        "'{}'",
        rank_tag(group),
        option,
        expected,
        fmt::join(missed, "', '")));
  }
}

void check_not_wrapped(
    const NamedTensor& parameter,
    const comm::ProcessGroup& group) {
  if (GradientHooks::is_hooked(parameter.tensor)) {
    throw ConfigError(fmt::format(
        "{} parameter '{}': expected in one wrapper at a time, got one that "
        "averages its gradients already. Destroy that wrapper first",
        rank_tag(group),
        parameter.name));
  }
}

void check_sparse(
    const NamedTensor& parameter,
    GradientRole role,
    const comm::ProcessGroup& group) {
  if (role == GradientRole::kSparse && parameter.tensor.dim() == 0) {
    throw ConfigError(fmt::format(
        "{} parameter '{}': expected rows for a sparse gradient, got a scalar",
        rank_tag(group),
        parameter.name));
  }
}

} // namespace

void check_options(
    const DistributedDataParallelOptions& options,
    const comm::ProcessGroup& group) {
  check_reduction(options, group);
  check_positive_bytes("bucket_cap_bytes", options.bucket_cap_bytes(), group);
  check_positive_bytes(
      "first_bucket_bytes",
      options.first_bucket_bytes(),
      group);
}

void check_names(
    const ModuleTensors& tensors,
    const DistributedDataParallelOptions& options,
    const comm::ProcessGroup& group) {
  check_patterns(
      "params_and_buffers_to_ignore",
      options.params_and_buffers_to_ignore(),
      tensors.ignored,
      "a parameter or buffer",
      group);
  constexpr auto trained = "a parameter that requires grad";
  check_patterns(
      "delay_all_reduce_params",
      options.delay_all_reduce_params(),
      tensors.trained,
      trained,
      group);
  check_patterns(
      "sparse_params",
      options.sparse_params(),
      tensors.trained,
      trained,
      group);
}

bool lies_on_several(const ModuleTensors& tensors, at::DeviceType type) {
  const auto handles = tensors.handles();
  const auto is_of_type = [&](const at::Tensor& tensor) {
    return tensor.device().type() == type;
  };
  const auto is_elsewhere = [&](const at::Tensor& tensor) {
    return tensor.device() != handles.front().device();
  };
  return std::all_of(handles.begin(), handles.end(), is_of_type) &&
      std::any_of(handles.begin(), handles.end(), is_elsewhere);
}

void check_tensors(
    const ModuleTensors& tensors,
    at::Device device,
    bool spans_devices,
    const comm::ProcessGroup& group) {
  check_backend(device, group);
  check_trains(tensors, group);
  const auto check = [&](const char* kind, const NamedTensor& named) {
    if (!spans_devices) {
      check_device(kind, named, device, group);
    }
    check_memory(kind, named, group);
  };
  for (const auto& parameter : tensors.parameters) {
    check("parameter", parameter);
  }
  for (const auto& buffer : tensors.buffers) {
    check("buffer", buffer);
  }
  for (size_t i = 0; i < tensors.trained.size(); ++i) {
    check_not_wrapped(tensors.trained[i], group);
    check_dtype(tensors.trained[i], group);
    check_sparse(tensors.trained[i], tensors.roles[i], group);
  }
}

void check_unchanged(
    const NamedTensor& parameter,
    const TensorType& wrapped_as,
    const comm::ProcessGroup& group) {
  const auto& tensor = parameter.tensor;
  if (tensor.scalar_type() == wrapped_as.dtype &&
      tensor.device() == wrapped_as.device &&
      tensor.sizes() == wrapped_as.sizes) {
    return;
  }
  throw ConfigError(fmt::format(
      "{} parameter '{}': expected {} [{}] on {} as when it was wrapped, got "
      "{} [{}] on {}. Convert the module before it is wrapped",
      rank_tag(group),
      parameter.name,
      at::toString(wrapped_as.dtype),
      fmt::join(wrapped_as.sizes, ", "),
      wrapped_as.device.str(),
      at::toString(tensor.scalar_type()),
      fmt::join(tensor.sizes(), ", "),
      tensor.device().str()));
}

void check_still_frozen(
    const NamedTensor& parameter,
    const comm::ProcessGroup& group) {
  if (parameter.tensor.requires_grad()) {
    throw ConfigError(fmt::format(
        "{} parameter '{}': expected frozen as when it was wrapped, got "
        "requires_grad. Its gradients would not be averaged: wrap the module "
        "again",
        rank_tag(group),
        parameter.name));
  }
}

} // namespace tandem::detail
