#include <tandem/comm/join.h>

#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

namespace tandem::comm {

namespace {

// So many iterations without this rank are more likely a mistake than a tail.
constexpr int64_t kManyIterations = 1000;
constexpr auto kEarlyRemedy =
    "Give every rank as many batches, or leave throw_on_early_termination off";

std::string tag_of(const ProcessGroup& group) {
  return rank_tag("join", group.rank(), group.size());
}

std::shared_ptr<ProcessGroup> group_of(
    const std::vector<Joinable*>& joinables) {
  if (joinables.empty()) {
    throw ConfigError("Join: joinables: expected at least one, got none");
  }
  std::shared_ptr<ProcessGroup> group;
  for (const auto* joinable : joinables) {
    if (joinable == nullptr) {
      throw ConfigError("Join: joinables: expected objects, got null");
    }
    auto next = joinable->join_process_group();
    if (group && next != group) {
      throw ConfigError(fmt::format(
          "{} joinables: expected one process group, got several. Make them "
          "with the same group, or a Join for each",
          tag_of(*group)));
    }
    group = std::move(next);
  }
  return group;
}

} // namespace

Join::Join(std::vector<Joinable*> joinables, const JoinOptions& options)
    : joinables_(std::move(joinables)),
      options_(options),
      group_(group_of(joinables_)) {
  for (const auto* joinable : joinables_) {
    if (joinable->join_ != nullptr) {
      throw ConfigError(fmt::format(
          "{} joinables: expected each in one Join at a time, got one that is "
          "part of another, or twice in this one",
          tag_of(*group_)));
    }
  }
  if (!options_.enable()) {
    return;
  }
  for (auto* joinable : joinables_) {
    hooks_.push_back(joinable->join_hook(options_));
  }
  for (auto* joinable : joinables_) {
    joinable->join_ = this;
  }
}

Join::~Join() {
  detach();
}

void Join::finish() {
  if (options_.enable()) {
    shadow();
  }
  detach();
}

void Join::shadow() {
  bool is_last = true;
  for (int64_t iteration = 0; sum(0, "number of ranks with inputs") > 0;
       ++iteration) {
    if (options_.throw_on_early_termination()) {
      sum(1, "early end of the inputs");
      throw PeerError(fmt::format(
          "{} inputs: expected as many as on the other ranks, got none left on "
          "this rank, {}. {}",
          tag_of(*group_),
          group_->rank(),
          kEarlyRemedy));
    }
    if (iteration == kManyIterations) {
      TORCH_WARN_ONCE(
          tag_of(*group_),
          " inputs: other ranks have run ",
          kManyIterations,
          " iterations since this one had none left");
    }
    is_last = false;
    for (const auto& hook : hooks_) {
      hook->main_hook();
    }
  }
  for (const auto& hook : hooks_) {
    hook->post_hook(is_last);
  }
}

void Join::notify(Joinable& joinable) {
  auto* const join = joinable.join_;
  if (join != nullptr && join->joinables_.front() == &joinable) {
    join->start_iteration();
  }
}

const JoinOptions* Join::options_of(const Joinable& joinable) {
  return joinable.join_ == nullptr ? nullptr : &joinable.join_->options_;
}

void Join::start_iteration() {
  if (options_.throw_on_early_termination()) {
    sum(1, "number of ranks with inputs");
    if (sum(0, "early end of the inputs") > 0) {
      throw PeerError(fmt::format(
          "{} inputs: expected as many on every rank, got at least one rank "
          "that has none left. {}",
          tag_of(*group_),
          kEarlyRemedy));
    }
    return;
  }
  // Nobody here needs the number: it is waited for with the next one.
  group_->wait(counting_, "number of ranks with inputs");
  count_ = at::ones({1}, at::kLong);
  counting_ = group_->all_reduce_async(count_);
}

int64_t Join::sum(int64_t own, const char* what) {
  group_->wait(std::exchange(counting_, nullptr), what);
  auto number = at::full({1}, own, at::kLong);
  group_->confirm(group_->all_reduce_async(number), what);
  return number.item<int64_t>();
}

void Join::detach() noexcept {
  for (auto* joinable : joinables_) {
    if (joinable->join_ == this) {
      joinable->join_ = nullptr;
    }
  }
}

void with_join(
    std::vector<Joinable*> joinables,
    const std::function<void()>& body,
    const JoinOptions& options) {
  Join join(std::move(joinables), options);
  body();
  join.finish();
}

} // namespace tandem::comm
