#pragma once

#include <functional>
#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <tandem/comm/process_group.h>

#include "roll_call.h"
#include "works_in_flight.h"

namespace tandem::comm {

/// What `ProcessGroup` hides, and how a collective starts, ends and fails.
struct ProcessGroup::State {
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Store> store;
  at::Device device;
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds startup_timeout;
  int64_t rank = 0;
  int64_t size = 1;
  int64_t sequence = 0;
  WorksInFlight in_flight;
  /// Message of the first failure; empty while there was none.
  std::string failure;

  std::string tag() const;
  /// **Throws** `ShapeError` if there is none.
  c10::intrusive_ptr<c10d::Backend> backend(at::DeviceType type) const;
  /// Fails what is in flight. **Throws** nothing.
  void abort() noexcept;
  /// What the destructor does. **Throws** nothing.
  void close() noexcept;

  /// Has the backend for `type` start a collective that errors call `what`.
  WorkPtr start(
      const std::string& what,
      at::DeviceType type,
      const std::function<WorkPtr(c10d::Backend&)>& start_on);
  /// Blocks until `work` has completed, a peer has failed, or time is up.
  void await_completion(c10d::Work& work, const std::string& what);
  /// Takes the roll call (Note [Roll call]) and throws what it found.
  [[noreturn]] void fail(const std::string& what, const std::string& cause);

 private:
  void abort_backend(at::DeviceType type);
  void check_usable(const std::string& what) const;
  std::string describe_failure(
      const std::string& what,
      const std::string& cause,
      const RollCallResult& roll_call) const;
};

} // namespace tandem::comm
