#pragma once

#include <vector>

#include <ATen/ThreadLocalState.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

namespace tandem {

/// The calling thread's state that a worker must share to compute the same:
/// grad mode, inference mode, autocast and its dtypes, dispatch keys (all of
/// `at::ThreadLocalState`), and the current stream of each device given.
/// Not part of it: the default dtype and the CPU generator (the process's own).
class ThreadState {
 public:
  /// `devices` are of one type.
  explicit ThreadState(const std::vector<at::Device>& devices);

 private:
  friend class ThreadStateGuard;

  at::ThreadLocalState local_;
  /// One per device; none on the CPU, which has no streams.
  std::vector<c10::Stream> streams_;
};

/// Gives the current thread `state`, with the `device_index`-th of its devices
/// current, until it is destroyed.
class ThreadStateGuard {
 public:
  ThreadStateGuard(const ThreadState& state, size_t device_index);

 private:
  at::ThreadLocalStateGuard local_;
  c10::MultiStreamGuard streams_;
  c10::OptionalStreamGuard stream_;
};

} // namespace tandem
