#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>

namespace tandem {

/// Replaces each parameter by its mean over the group, bit for bit the same on
/// every rank, in one transfer per dtype and device. Counts as a change in
/// place. A world of one keeps what it has.
/// **Collective**, with the same parameters in the same order.
/// **Throws** `ShapeError` for parameters that have no mean: integers.
void average_over(
    comm::ProcessGroup& group,
    const std::vector<at::Tensor>& parameters);

/// Lets models that are trained apart meet from time to time: decides after
/// which steps parameters are averaged, and over which ranks.
/// **Source**: `torch.distributed.algorithms.model_averaging`
class ModelAverager {
 public:
  virtual ~ModelAverager() = default;
  ModelAverager(const ModelAverager&) = delete;
  ModelAverager& operator=(const ModelAverager&) = delete;

  /// To be called after each optimizer step: averages the parameters if it is
  /// time to, and counts the step.
  /// **Collective**. **Throws** as `average_over`.
  void average_parameters(const std::vector<at::Tensor>& parameters);

  /// Steps counted so far. Belongs in a checkpoint: all ranks must have the
  /// same one.
  int64_t step() const {
    return step_;
  }
  /// **Throws** `ConfigError` for negative ones.
  void set_step(int64_t step);

  /// All ranks that are ever averaged over.
  const std::shared_ptr<comm::ProcessGroup>& process_group() const {
    return group_;
  }

 protected:
  /// `group` null: the thread's default group.
  explicit ModelAverager(std::shared_ptr<comm::ProcessGroup> group);

  /// The ranks to average over after the step with this number, counted from 0;
  /// null if it is not time to.
  virtual comm::ProcessGroup* group_due_at(int64_t step) const = 0;

 private:
  std::shared_ptr<comm::ProcessGroup> group_;
  int64_t step_ = 0;
};

} // namespace tandem
