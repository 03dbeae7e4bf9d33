#include "harness/mode_group.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/core/errors.h>

#include "harness/worker_channel.h"

namespace tandem::bench {

namespace {

/// Between two looks at the store: seldom enough not to disturb what is timed.
constexpr std::chrono::milliseconds kPause{50};

} // namespace

ModeGroup::ModeGroup(
    c10::intrusive_ptr<c10d::Store> store,
    int64_t mode,
    int64_t num_workers,
    std::string name,
    const CommandLine& arguments)
    : store_(std::move(store)),
      mode_(mode),
      num_workers_(num_workers),
      name_(std::move(name)),
      program_(arguments) {}

ModeGroup::~ModeGroup() = default;

std::vector<ReadyReport> ModeGroup::await_ready() {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(num_workers_));
  for (int64_t rank = 0; rank < num_workers_; ++rank) {
    keys.push_back(ready_key(mode_, rank));
  }
  return await_all<ReadyReport>(keys);
}

std::vector<TurnReport> ModeGroup::run_turn(const TurnOrder& order) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(num_workers_));
  for (int64_t rank = 0; rank < num_workers_; ++rank) {
    keys.push_back(report_key(mode_, num_orders_, rank));
  }
  give_order(order);
  return await_all<TurnReport>(keys);
}

void ModeGroup::end() {
  give_order({});
  if (const int code = program_.wait()) {
    throw Error(fmt::format(
        "[bench] {}: expected its workers to end well, got exit code {}",
        name_,
        code));
  }
}

void ModeGroup::give_order(const TurnOrder& order) {
  store_->set(order_key(mode_, num_orders_++), to_text(order));
}

template <typename Message>
std::vector<Message> ModeGroup::await_all(
    const std::vector<std::string>& keys) {
  while (!store_->check(keys)) {
    std::this_thread::sleep_for(kPause);
    if (const auto code = program_.exit_code()) {
      throw Error(fmt::format(
          "[bench] {}: expected {} worker(s) that can be timed, got exit code "
          "{}. What they printed says why",
          name_,
          num_workers_,
          *code));
    }
  }
  std::vector<Message> messages;
  messages.reserve(keys.size());
  for (const auto& key : keys) {
    messages.push_back(from_text<Message>(store_->get_to_str(key)));
    store_->deleteKey(key);
  }
  return messages;
}

} // namespace tandem::bench
