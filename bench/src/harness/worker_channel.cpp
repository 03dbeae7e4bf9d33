#include "harness/worker_channel.h"

#include <chrono>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace tandem::bench {

namespace {

constexpr const char* kHost = "127.0.0.1";
/// Longer than any run.
constexpr std::chrono::hours kLongest{24 * 7};

c10::intrusive_ptr<c10d::Store> open_store(int64_t port, bool serves) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = serves;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>(kHost, options);
}

} // namespace

c10::intrusive_ptr<c10d::Store> serve_store() {
  return open_store(0, true);
}

int64_t port_of(const c10d::Store& store) {
  return dynamic_cast<const c10d::TCPStore&>(store).getPort();
}

std::string ready_key(int64_t mode, int64_t rank) {
  return fmt::format("{}/ready/{}", mode, rank);
}

std::string order_key(int64_t mode, int64_t turn) {
  return fmt::format("{}/order/{}", mode, turn);
}

std::string report_key(int64_t mode, int64_t turn, int64_t rank) {
  return fmt::format("{}/report/{}/{}", mode, turn, rank);
}

WorkerChannel::WorkerChannel(int64_t port, int64_t mode, int64_t rank)
    : store_(open_store(port, false)), mode_(mode), rank_(rank) {}

WorkerChannel::~WorkerChannel() = default;

void WorkerChannel::report_ready(const ReadyReport& report) {
  store_->set(ready_key(mode_, rank_), to_text(report));
}

TurnOrder WorkerChannel::next_order() {
  const auto key = order_key(mode_, num_orders_++);
  store_->wait({key}, kLongest);
  return from_text<TurnOrder>(store_->get_to_str(key));
}

void WorkerChannel::report_turn(const TurnReport& report) {
  store_->set(report_key(mode_, num_orders_ - 1, rank_), to_text(report));
}

} // namespace tandem::bench
