#include "statistics_meeting.h"

#include <algorithm>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <tandem/core/sync_batch_norm.h>

namespace tandem::detail {

namespace {

constexpr auto kEnd = "the end of its forward";

std::string layer_text(
    const LayerNames& names,
    const torch::nn::Module& layer) {
  const auto found = names.find(&layer);
  return found == names.end() ? std::string("a layer that is not registered")
                              : fmt::format("'{}'", found->second);
}

} // namespace

LayerNames sync_batch_norm_names(
    const std::vector<std::shared_ptr<torch::nn::Module>>& replicas) {
  LayerNames names;
  for (const auto& replica : replicas) {
    for (const auto& item : replica->named_modules()) {
      if (item.value()->as<SyncBatchNormImpl>() != nullptr) {
        names.emplace(item.value().get(), item.key());
      }
    }
  }
  return names;
}

MeetingBroken::MeetingBroken()
    : Error("SyncBatchNorm: left because another replica failed") {}

class StatisticsMeeting::Seat final : public StatisticsGroup {
 public:
  Seat(StatisticsMeeting& meeting, size_t replica)
      : meeting_(meeting), replica_(replica) {}

  BatchMoments combine(const torch::nn::Module& layer, const BatchMoments& own)
      override {
    return meeting_.combine(replica_, layer, own);
  }

 private:
  StatisticsMeeting& meeting_;
  size_t replica_;
};

StatisticsMeeting::StatisticsMeeting(
    const LayerNames& names,
    const std::vector<at::Device>& devices)
    : names_(names),
      devices_(devices),
      places_(devices.size()),
      results_(devices.size()) {
  for (size_t replica = 0; replica < devices.size(); ++replica) {
    seats_.push_back(std::make_unique<Seat>(*this, replica));
  }
}

StatisticsMeeting::~StatisticsMeeting() = default;

StatisticsGroup& StatisticsMeeting::seat(size_t replica) {
  return *seats_.at(replica);
}

BatchMoments StatisticsMeeting::combine(
    size_t replica,
    const torch::nn::Module& layer,
    const BatchMoments& own) {
  std::unique_lock lock(mutex_);
  if (is_broken_) {
    throw MeetingBroken();
  }
  arrive(replica, layer_text(names_, layer), own.packed);
  if (all_wait()) {
    conclude();
  } else {
    const size_t round = num_rounds_;
    changed_.wait(lock, [&] { return num_rounds_ != round || is_broken_; });
    if (num_rounds_ == round) {
      throw MeetingBroken();
    }
  }
  return {std::exchange(results_[replica], {})};
}

void StatisticsMeeting::finish(size_t replica) {
  const std::lock_guard lock(mutex_);
  if (!is_broken_) {
    arrive(replica, kEnd, {});
  }
}

void StatisticsMeeting::fail() {
  const std::lock_guard lock(mutex_);
  break_off();
}

/// Notes where a replica is. Throws if another is elsewhere and cannot come.
void StatisticsMeeting::arrive(
    size_t replica,
    std::string text,
    const at::Tensor& moments) {
  places_[replica] = {std::move(text), moments};
  const auto differs = [&](const Place& place) {
    return !place.text.empty() && place.text != places_[replica].text;
  };
  if (std::any_of(places_.begin(), places_.end(), differs)) {
    break_off();
    throw Error(fmt::format(
        "DataParallel: SyncBatchNorm: expected all replicas at the same layer, "
        "got {}. Call the same SyncBatchNorm layers in the same order for "
        "every "
        "chunk of rows",
        describe_places()));
  }
}

bool StatisticsMeeting::all_wait() const {
  return std::none_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.text.empty();
  });
}

/// Combines the statistics and lets everybody go.
void StatisticsMeeting::conclude() {
  try {
    std::vector<at::Tensor> parts;
    for (const auto& place : places_) {
      parts.push_back(place.moments.to(devices_.front()));
    }
    const auto total = combine_moments(at::stack(parts)).packed;
    // One node for all replicas: the engine adds their gradients in order.
    const auto copies =
        total.expand({static_cast<int64_t>(parts.size()), -1}).unbind(0);
    for (size_t replica = 0; replica < copies.size(); ++replica) {
      results_[replica] = copies[replica].to(devices_[replica]);
    }
  } catch (...) {
    break_off();
    throw;
  }
  std::fill(places_.begin(), places_.end(), Place());
  ++num_rounds_;
  changed_.notify_all();
}

void StatisticsMeeting::break_off() {
  is_broken_ = true;
  changed_.notify_all();
}

std::string StatisticsMeeting::describe_places() const {
  std::string text;
  for (size_t replica = 0; replica < places_.size(); ++replica) {
    if (!places_[replica].text.empty()) {
      text += fmt::format(
          "{}replica {} on {} at {}",
          text.empty() ? "" : ", ",
          replica,
          devices_[replica].str(),
          places_[replica].text);
    }
  }
  return text;
}

} // namespace tandem::detail
