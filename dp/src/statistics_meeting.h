#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <tandem/core/errors.h>
#include <tandem/core/statistics_group.h>

namespace tandem::detail {

/// Names of `SyncBatchNorm` layers, those of all replicas.
using LayerNames = std::unordered_map<const torch::nn::Module*, std::string>;

LayerNames sync_batch_norm_names(
    const std::vector<std::shared_ptr<torch::nn::Module>>& replicas);

/// What the others get where one replica cannot come to a meeting; that one's
/// own exception says why.
class MeetingBroken : public Error {
 public:
  MeetingBroken();
};

/// Where the replicas of one forward meet, in each call of a `SyncBatchNorm`
/// layer. The last one to arrive combines the statistics on the first device,
/// by differentiable operators and copies: so backward finds them as ordinary
/// edges of the graph, and waits for nobody.
///
/// A replica that fails, finishes or comes to another layer while others wait
/// breaks the meeting for all.
/// **Threads**: each replica's thread uses its own seat.
class StatisticsMeeting {
 public:
  /// A meeting of as many replicas as there are devices. `names` outlives it.
  StatisticsMeeting(
      const LayerNames& names,
      const std::vector<at::Device>& devices);
  ~StatisticsMeeting();
  StatisticsMeeting(const StatisticsMeeting&) = delete;
  StatisticsMeeting& operator=(const StatisticsMeeting&) = delete;

  StatisticsGroup& seat(size_t replica);

  /// The replica's forward has returned.
  /// **Throws** `Error` naming replicas and layers if others wait for it.
  void finish(size_t replica);
  /// The replica's forward has thrown.
  void fail();

 private:
  class Seat;
  /// Where a replica is, for comparison and messages.
  struct Place {
    /// What it waits for or how it ended; empty while it runs.
    std::string text;
    at::Tensor moments; // [1 + 2 * C]
  };

  BatchMoments combine(
      size_t replica,
      const torch::nn::Module& layer,
      const BatchMoments& own);
  void arrive(size_t replica, std::string text, const at::Tensor& moments);
  bool all_wait() const;
  void conclude();
  void break_off();
  std::string describe_places() const;

  const LayerNames& names_;
  std::vector<at::Device> devices_;
  std::vector<std::unique_ptr<Seat>> seats_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Place> places_;
  /// Of the last round, by replica.
  std::vector<at::Tensor> results_;
  size_t num_rounds_ = 0;
  bool is_broken_ = false;
};

} // namespace tandem::detail
