#include "module_checks.h"

#include <ATen/MemoryOverlap.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

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
  check_backend(device, group);
  check_trains(tensors, group);
  for (const auto& parameter : tensors.parameters) {
    check_device("parameter", parameter, device, group);
    check_memory("parameter", parameter, group);
  }
  for (const auto& buffer : tensors.buffers) {
    check_device("buffer", buffer, device, group);
    check_memory("buffer", buffer, group);
  }
  for (const auto& parameter : tensors.trained) {
    check_dtype(parameter, group);
  }
}

void check_unchanged(
    const NamedTensor& parameter,
    const at::Tensor& gradient,
    const comm::ProcessGroup& group) {
  const auto& tensor = parameter.tensor;
  if (tensor.scalar_type() == gradient.scalar_type() &&
      tensor.device() == gradient.device() &&
      tensor.sizes() == gradient.sizes()) {
    return;
  }
  throw ConfigError(fmt::format(
      "{} parameter '{}': expected {} [{}] on {} as when it was wrapped, got "
      "{} [{}] on {}. Convert the module before it is wrapped",
      rank_tag(group),
      parameter.name,
      at::toString(gradient.scalar_type()),
      fmt::join(gradient.sizes(), ", "),
      gradient.device().str(),
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
