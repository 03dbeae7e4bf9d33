#include <tandem/comm/tensor_future.h>

#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/core/errors.h>

#include "future_work.h"

namespace tandem::comm {

namespace {

/// The devices whose streams a future of `tensor` orders.
std::vector<c10::Device> devices_of(const at::Tensor& tensor) {
  return tensor.is_cuda() ? std::vector<c10::Device>{tensor.device()}
                          : std::vector<c10::Device>{};
}

at::Tensor tensor_in(c10::ivalue::Future& completed) {
  const auto value = completed.value();
  if (value.isTensor()) {
    return value.toTensor();
  }
  if (value.isTensorList() && value.toTensorList().size() == 1) {
    return value.toTensorList().get(0);
  }
  throw ConfigError(
      "[comm] future: expected one tensor, got " + value.tagKind());
}

} // namespace

TensorFuture ready_future(const at::Tensor& tensor) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(
      c10::TensorType::get(),
      devices_of(tensor));
  future->markCompleted(tensor);
  return future;
}

TensorFuture then(
    const TensorFuture& future,
    std::function<at::Tensor(const at::Tensor&)> next) {
  return future->then(
      [next = std::move(next)](c10::ivalue::Future& completed) -> c10::IValue {
        const at::NoGradGuard no_grad;
        return next(tensor_in(completed));
      },
      c10::TensorType::get());
}

TensorFuture all_reduce_future(
    ProcessGroup& group,
    const at::Tensor& tensor,
    ReduceOp op) {
  const at::NoGradGuard no_grad;
  const bool is_mean = op == ReduceOp::kMean;
  if (is_mean) {
    at::Tensor(tensor).div_(group.size());
  }
  const auto work =
      group.all_reduce_async(tensor, is_mean ? ReduceOp::kSum : op);
  if (!work) {
    return ready_future(tensor);
  }
  return then(work->getFuture(), [tensor](const at::Tensor&) {
    return tensor;
  });
}

at::Tensor tensor_of(const TensorFuture& future) {
  return tensor_in(*future);
}

c10::intrusive_ptr<c10d::Work> work_of(
    const TensorFuture& future,
    std::chrono::milliseconds limit) {
  return FutureWork::watch(future, limit);
}

} // namespace tandem::comm
