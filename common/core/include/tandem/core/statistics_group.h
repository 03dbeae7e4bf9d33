#pragma once

#include <memory>

#include <torch/nn/module.h>

#include <tandem/core/batch_moments.h>

namespace tandem {

/// One participant's way to the statistics of a batch whose rows are spread
/// over several: replicas of one process or ranks. What `SyncBatchNorm` asks.
class StatisticsGroup {
 public:
  StatisticsGroup() = default;
  virtual ~StatisticsGroup() = default;
  StatisticsGroup(const StatisticsGroup&) = delete;
  StatisticsGroup& operator=(const StatisticsGroup&) = delete;

  /// Moments over the rows of all participants, on the device of `own`, those
  /// of this one's rows. The gradient of the result reaches every
  /// participant's `own`.
  ///
  /// `layer` is the module that asks; the participants' need not be the same
  /// object.
  /// **Collective**: every participant calls it for the same layers in the
  /// same order; it returns when all have.
  /// **Throws** if another participant failed, or is at another layer.
  virtual BatchMoments combine(
      const torch::nn::Module& layer,
      const BatchMoments& own) = 0;

  /// The group for layers of this forward that are called once more in its
  /// backward (activations that are recomputed): to be asked for in forward,
  /// entered by a scope around the recomputation. Its layers leave their
  /// running statistics alone. Never null; by default its `combine` throws
  /// `ConfigError`.
  virtual std::shared_ptr<StatisticsGroup> for_recomputation();
  virtual bool is_recomputation() const {
    return false;
  }
};

/// Makes `group` the one that layers called in this thread find, until it is
/// destroyed. Null hides an outer one.
class StatisticsScope {
 public:
  /// `group` outlives the scope.
  explicit StatisticsScope(StatisticsGroup* group);
  ~StatisticsScope();
  StatisticsScope(const StatisticsScope&) = delete;
  StatisticsScope& operator=(const StatisticsScope&) = delete;

  /// The calling thread's group; null without a scope.
  static StatisticsGroup* current();

 private:
  StatisticsGroup* outer_;
};

} // namespace tandem
