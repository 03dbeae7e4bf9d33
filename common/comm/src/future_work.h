#pragma once

#include <chrono>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/tensor_future.h>

namespace tandem::comm {

/// Work that ends when a future does, or at a limit: what the future waits for
/// may be a user's own and never come.
class FutureWork : public c10d::Work {
 public:
  static c10::intrusive_ptr<FutureWork> watch(
      TensorFuture future,
      std::chrono::milliseconds limit);

  FutureWork(TensorFuture future, std::chrono::milliseconds limit);

  bool wait(std::chrono::milliseconds timeout) override;
  TensorFuture getFuture() override;

 private:
  TensorFuture future_;
  std::chrono::milliseconds limit_;
};

} // namespace tandem::comm
