#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/placement.h"

namespace tandem::bench {

/// How a network is wrapped when it is timed.
enum class TimedStrategy {
  /// Not at all.
  kBare,
  kSingle,
  kDP,
  kDDP,
  /// ddp with gradients that are copied from the buckets.
  kDDPCopies,
  /// As many processes as ddp has, which never talk: no strategy on as many
  /// workers can be faster.
  kDDPNoSync,
  /// ddp's peers: PyTorch's C++ reducer around the bare network, without views
  /// and with; one blocking all-reduce for each parameter.
  kDDPC10d,
  kDDPC10dViews,
  kDDPNaive,
  /// The same network under Python's DistributedDataParallel; the same under
  /// its no_sync.
  kPythonDDP,
  kPythonNoSync,
};

/// What is timed.
enum class Activity {
  /// A training step: gradients to zero, forward, loss on the gathered outputs,
  /// backward, optimizer.
  kTrain,
  /// The same with the loss inside the replicas, by `mean_loss`.
  kMeanLoss,
  /// A forward in eval mode without gradients, of parameters that stay.
  kEvaluate,
  /// `DataParallel::refresh` by itself.
  kRefresh,
  /// What it does, done tensor by tensor: the peer of kRefresh.
  kCopyEach,
};

/// One thing that is timed: a row of the table.
struct Mode {
  TimedStrategy strategy = TimedStrategy::kSingle;
  Activity activity = Activity::kTrain;
  int64_t workers = 1;
  /// Intra-op threads of each worker.
  int64_t threads = 1;
  /// Of ddp, as `make_comm_hook` knows it; empty: none.
  std::string hook;

  bool operator==(const Mode&) const = default;
};

/// "bare", "single", "dp", "ddp", "ddp-copies", "ddp-nosync", "ddp-c10d",
/// "ddp-c10d-views", "ddp-naive", "python-ddp", "python-nosync".
std::string timed_strategy_name(TimedStrategy strategy);
/// The reverse. **Throws** `ConfigError` naming them all.
TimedStrategy timed_strategy_from_name(const std::string& name);
std::vector<std::string> timed_strategy_names();

/// "train", "mean-loss", "evaluate", "refresh", "copy-each".
std::string activity_name(Activity activity);
/// The reverse. **Throws** `ConfigError` naming them all.
Activity activity_from_name(const std::string& name);
std::vector<std::string> activity_names();

/// Its worker is a process of its own, as ddp's.
bool has_ranks(TimedStrategy strategy);
/// Its workers run Python.
bool runs_python(TimedStrategy strategy);

/// What the modes of a run are made of.
struct ModeChoices {
  std::vector<TimedStrategy> strategies;
  std::vector<Activity> activities;
  /// Names of communication hooks.
  std::vector<std::string> hooks;
  /// Of the modes that have several, each with so many threads.
  int64_t workers = 1;
  int64_t threads = 1;
  /// Times single with as many threads too as the other modes have altogether.
  bool single_at_all_threads = true;
};

/// The modes of a run, in the order in which they take turns: all activities of
/// all strategies where they make sense: kRefresh and kCopyEach with dp alone,
/// kMeanLoss not with kBare, of ddp's peers kTrain alone. Bare and single have
/// one worker. A ddp that trains is followed by itself with each of the hooks.
std::vector<Mode> plan_modes(const ModeChoices& choices);

/// Where such a mode runs, `request` saying what modes share.
PlacementRequest placement_of(const Mode& mode, PlacementRequest request);

} // namespace tandem::bench
