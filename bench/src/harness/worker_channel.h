#pragma once

#include <cstdint>
#include <string>

#include <c10/util/intrusive_ptr.h>

#include "harness/messages.h"

namespace c10d {
class Store;
} // namespace c10d

namespace tandem::bench {

/// Serves the store through which a coordinator and the workers of its modes
/// talk, on the loopback interface and a port that the kernel chooses.
/// **Throws** `Error` if the system refuses.
c10::intrusive_ptr<c10d::Store> serve_store();
/// The port of such a store.
int64_t port_of(const c10d::Store& store);

/// Where the texts of one mode are in the store.
std::string ready_key(int64_t mode, int64_t rank);
std::string order_key(int64_t mode, int64_t turn);
std::string report_key(int64_t mode, int64_t turn, int64_t rank);

/// A worker's end. While it waits for an order it sleeps in a read.
class WorkerChannel {
 public:
  /// **Throws** `Error` if there is no coordinator at `port`.
  WorkerChannel(int64_t port, int64_t mode, int64_t rank);
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  void report_ready(const ReadyReport& report);
  /// Waits for as long as it takes.
  /// **Throws** if the coordinator is gone.
  TurnOrder next_order();
  /// Of the last order.
  void report_turn(const TurnReport& report);

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  int64_t mode_;
  int64_t rank_;
  int64_t num_orders_ = 0;
};

} // namespace tandem::bench
