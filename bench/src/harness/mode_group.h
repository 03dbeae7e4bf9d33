#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include "harness/messages.h"
#include "processes/child_program.h"

namespace c10d {
class Store;
} // namespace c10d

namespace tandem::bench {

/// The processes of one mode, seen from the coordinator. They are made once and
/// wait for their turns.
class ModeGroup {
 public:
  /// Starts this program with `arguments`, which is to make `num_workers`
  /// workers of the mode with that index. `name` is for messages.
  ModeGroup(
      c10::intrusive_ptr<c10d::Store> store,
      int64_t mode,
      int64_t num_workers,
      std::string name,
      const CommandLine& arguments);
  ~ModeGroup();
  ModeGroup(const ModeGroup&) = delete;
  ModeGroup& operator=(const ModeGroup&) = delete;

  /// Waits until all workers were verified; what each has found.
  /// **Throws** `Error` if their process ends before, as the others do.
  std::vector<ReadyReport> await_ready();
  /// Has the workers run one turn; what each of them reports.
  std::vector<TurnReport> run_turn(const TurnOrder& order);
  /// Ends the processes.
  void end();

 private:
  void give_order(const TurnOrder& order);
  /// The texts at these keys, in their order, as soon as all are there.
  template <typename Message>
  std::vector<Message> await_all(const std::vector<std::string>& keys);

  c10::intrusive_ptr<c10d::Store> store_;
  int64_t mode_;
  int64_t num_workers_;
  std::string name_;
  int64_t num_orders_ = 0;
  ChildProgram program_;
};

} // namespace tandem::bench
