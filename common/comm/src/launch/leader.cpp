#include "leader.h"

#include <random>
#include <utility>

#include <fmt/format.h>

namespace tandem::comm::launch {

namespace {

std::string random_run_id() {
  std::random_device random;
  return fmt::format("tandem-{:08x}{:08x}", random(), random());
}

} // namespace

Leader::Leader(const LaunchOptions& options)
    : options_(options),
      run_id_(random_run_id()),
      restarts_(options.max_restarts()) {}

std::optional<Start> Leader::take_start() {
  if (!std::exchange(start_due_, false)) {
    return std::nullopt;
  }
  // The one before is still there: so the port is another.
  store_ = std::make_unique<AgentStore>();
  return Start{
      {.num_ranks = options_.num_ranks(),
       .num_local_ranks = options_.num_ranks(),
       .address = store_->address(),
       .port = store_->port(),
       .run_id = run_id_,
       .attempt = restarts_.attempt(),
       .max_restarts = options_.max_restarts()},
      failures_};
}

std::optional<Finish> Leader::take_finish() {
  return std::exchange(finish_, std::nullopt);
}

void Leader::tell_end(const AttemptEnd& end) {
  failures_ = end.failures;
  if (auto result = restarts_.after(end)) {
    finish_ = Finish{std::move(*result), failures_};
  } else {
    start_due_ = true;
  }
}

} // namespace tandem::comm::launch
