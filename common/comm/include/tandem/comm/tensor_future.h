#pragma once

#include <chrono>
#include <functional>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// A tensor that a collective, or work after it, will give.
using TensorFuture = c10::intrusive_ptr<c10::ivalue::Future>;

/// One that is there already.
TensorFuture ready_future(const at::Tensor& tensor);

/// What `next` makes of the tensor when it comes; fails as `future` fails or
/// `next` throws. `next` runs without grad mode on the thread that completes
/// `future`, which is a backend's own: it must not start collectives or wait
/// for any, since their order would differ between ranks.
TensorFuture then(
    const TensorFuture& future,
    std::function<at::Tensor(const at::Tensor&)> next);

/// Sum or mean of `tensor` over the ranks, in place. The mean is divided by the
/// world size before the sum, so that half precision does not overflow.
/// **Collective**. **Throws** as `ProcessGroup::all_reduce_async`.
TensorFuture all_reduce_future(
    ProcessGroup& group,
    const at::Tensor& tensor,
    ReduceOp op = ReduceOp::kMean);

/// The tensor of a future that has completed; of a list of tensors, as
/// `c10d::Work::getFuture` gives, its only one.
/// **Throws** what made the future fail; `ConfigError` if it holds anything
/// else.
at::Tensor tensor_of(const TensorFuture& future);

/// A future as work that `ProcessGroup::wait` and `confirm` take. Waits for
/// `limit` at most.
c10::intrusive_ptr<c10d::Work> work_of(
    const TensorFuture& future,
    std::chrono::milliseconds limit);

} // namespace tandem::comm
