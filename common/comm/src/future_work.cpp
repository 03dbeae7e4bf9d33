#include "future_work.h"

#include <utility>

namespace tandem::comm {

c10::intrusive_ptr<FutureWork> FutureWork::watch(
    TensorFuture future,
    std::chrono::milliseconds limit) {
  auto work = c10::make_intrusive<FutureWork>(future, limit);
  future->addCallback([weak = c10::weak_intrusive_ptr<FutureWork>(work)](
                          c10::ivalue::Future& completed) {
    if (const auto self = weak.lock()) {
      self->finish(completed.exception_ptr());
    }
  });
  return work;
}

FutureWork::FutureWork(TensorFuture future, std::chrono::milliseconds limit)
    : future_(std::move(future)), limit_(limit) {}

bool FutureWork::wait(std::chrono::milliseconds timeout) {
  Work::wait(timeout == kNoTimeout ? limit_ : timeout);
  future_->wait(); // has the current stream wait for the future's own
  return true;
}

TensorFuture FutureWork::getFuture() {
  return future_;
}

} // namespace tandem::comm
