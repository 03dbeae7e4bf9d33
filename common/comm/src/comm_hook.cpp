#include <tandem/comm/comm_hook.h>

#include <exception>
#include <utility>

#include <fmt/format.h>

#include <tandem/comm/agreement.h>
#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

namespace tandem::comm {

namespace {

std::string tag(const ProcessGroup& group) {
  return rank_tag("ddp", group.rank(), group.size());
}

std::string text_of(
    at::ScalarType dtype,
    at::IntArrayRef sizes,
    at::Device device) {
  return fmt::format(
      "{} {} on {}",
      at::toString(dtype),
      c10::str(sizes),
      device.str());
}

} // namespace

std::string CommHook::configuration() const {
  return name();
}

std::string CommHook::describe() const {
  const auto [num_buckets, bytes_uncompressed, bytes_sent] = traffic();
  return fmt::format(
      "{}: sent {} bytes for {} bytes of gradients in {} buckets",
      configuration(),
      bytes_sent,
      bytes_uncompressed,
      num_buckets);
}

void CommHook::attach(
    const std::shared_ptr<ProcessGroup>& group,
    const std::vector<NamedTensor>& parameters) {
  try {
    attach_locally(group, parameters);
  } catch (...) {
    report_failure(*group, "ddp", message_of(std::current_exception()));
    throw;
  }
  try {
    agree_or_throw(*group, "ddp", {{"communication hook", configuration()}});
  } catch (...) {
    group_ = nullptr;
    throw;
  }
}

void CommHook::attach_locally(
    const std::shared_ptr<ProcessGroup>& group,
    const std::vector<NamedTensor>& parameters) {
  if (group_) {
    throw ConfigError(fmt::format(
        "{} communication hook '{}': expected one that serves no wrapper yet, "
        "got one in use. Make a hook for each wrapper",
        tag(*group),
        name()));
  }
  group_ = group;
  try {
    check(parameters);
  } catch (...) {
    group_ = nullptr;
    throw;
  }
}

at::Tensor CommHook::collect(GradBucket& bucket, const TensorFuture& future) {
  const auto reduced = finish(bucket, tensor_of(future));
  const auto& buffer = bucket.buffer();
  if (!bucket.is_sparse() &&
      (reduced.sizes() != buffer.sizes() ||
       reduced.scalar_type() != bucket.dtype() ||
       reduced.device() != buffer.device())) {
    throw ShapeError(fmt::format(
        "{} result of communication hook '{}' for bucket {}: expected {}, got "
        "{}",
        tag(group()),
        name(),
        bucket.index(),
        text_of(bucket.dtype(), buffer.sizes(), buffer.device()),
        text_of(reduced.scalar_type(), reduced.sizes(), reduced.device())));
  }
  return reduced;
}

HookTraffic CommHook::traffic() const {
  return {num_buckets_, bytes_uncompressed_, bytes_sent_};
}

void CommHook::check(const std::vector<NamedTensor>&) {}

at::Tensor CommHook::finish(GradBucket&, const at::Tensor& reduced) {
  return reduced;
}

ProcessGroup& CommHook::group() const {
  TORCH_INTERNAL_ASSERT(group_);
  return *group_;
}

void CommHook::count(int64_t bytes_uncompressed, int64_t bytes_sent) {
  ++num_buckets_;
  bytes_uncompressed_ += bytes_uncompressed;
  bytes_sent_ += bytes_sent;
}

void CommHook::count_sent(int64_t bytes) {
  bytes_sent_ += bytes;
}

FunctionHook::FunctionHook(Function function, std::string name)
    : function_(std::move(function)), name_(std::move(name)) {
  if (!function_) {
    throw ConfigError(fmt::format(
        "[ddp] communication hook '{}': expected a function, got an empty one",
        name_));
  }
}

std::string FunctionHook::name() const {
  return name_;
}

TensorFuture FunctionHook::run(GradBucket& bucket) {
  auto future = function_(bucket);
  if (!future) {
    throw ConfigError(fmt::format(
        "{} communication hook '{}' for bucket {}: expected a future, got null",
        tag(group()),
        name_,
        bucket.index()));
  }
  return future;
}

} // namespace tandem::comm
