#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/arg.h>
#include <torch/optim/optimizer.h>

#include <tandem/comm/join.h>
#include <tandem/comm/process_group.h>
#include <tandem/optim/optimizer_factory.h>

namespace tandem {

namespace detail {
class OverlappedStep;
class ShardBroadcast;
class ShardPlan;
} // namespace detail

/// `ZeroRedundancyOptions::overlap_chunk_bytes` unless chosen otherwise.
inline constexpr int64_t kDefaultOverlapChunkBytes = 4 << 20;

struct ZeroRedundancyOptions {
  /// The ranks that share the state. Default: the thread's default group at
  /// construction.
  TORCH_ARG(std::shared_ptr<comm::ProcessGroup>, process_group) = nullptr;
  /// With `begin_step`: how many bytes of parameters, of all ranks together,
  /// are sent at once. More: fewer transfers; less: they start earlier.
  TORCH_ARG(int64_t, overlap_chunk_bytes) = kDefaultOverlapChunkBytes;
};

/// An optimizer whose state is spread over the ranks: each holds it for its own
/// share of the parameters, steps these, and sends them to the others. State
/// takes 1 / world size of the memory; a step sends the parameters once.
///
/// 1. Gradients are those of the whole world before `step`, as
///    `DistributedDataParallel` leaves them, and the same on every rank.
/// 2. It is used as the plain one: schedulers, closures, `zero_grad` and
///    options in `param_groups` work on it. Its `state()` is empty: see
///    `local_optimizer`.
/// 3. Parameters go to the rank with the fewest elements yet, group by group,
///    the largest of a group first.
/// 4. The optimizer inside treats every parameter by itself; LBFGS does not.
///
/// **Collective**: construction, `add_param_group`, `step`,
/// `consolidate_state_dict`, on every rank with the same groups.
/// **Owns** the optimizer inside.
/// **Source**: Rajbhandari et al., "ZeRO", SC 2020, stage 1; PyTorch's
/// `torch.distributed.optim.ZeroRedundancyOptimizer`.
class ZeroRedundancyOptimizer : public torch::optim::Optimizer,
                                public comm::Joinable {
 public:
  /// **Throws** `ConfigError` without parameters, for LBFGS, or if groups,
  /// sizes or dtypes differ between ranks; `ShapeError` for sparse parameters
  /// and for several dtypes or kinds of devices; `PeerError` if another rank
  /// throws.
  ZeroRedundancyOptimizer(
      const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
      OptimizerFactory make,
      const ZeroRedundancyOptions& options = {});
  ZeroRedundancyOptimizer(
      const std::vector<at::Tensor>& parameters,
      OptimizerFactory make,
      const ZeroRedundancyOptions& options = {});
  ~ZeroRedundancyOptimizer() override;

  /// Shares out one more group, as construction does. Through an `Optimizer&`
  /// a group is added too, and shared out at the next step.
  /// **Collective**. **Throws** as the constructor.
  void add_param_group(const torch::optim::OptimizerParamGroup& param_group);

  /// Calls `closure` once, if there is one, steps this rank's share, and gives
  /// all ranks all parameters. Returns the closure's loss.
  /// **Collective**. **Throws** as collectives do; `ConfigError` if parameters
  /// were removed.
  at::Tensor step(LossClosure closure = nullptr) override;

  /// Takes one parameter's part of the next step ahead, as soon as its gradient
  /// is that of the whole world; parameters are on their way to the other ranks
  /// before `step` is called, which takes the rest. Their values are to be used
  /// after `step` only, and gradients not to be changed in between (clipping).
  /// Ignores tensors that are not parameters of this optimizer.
  /// **Collective**, in the same order on every rank; not inside a `Join`.
  /// **Throws** `ConfigError` for a parameter that comes twice before `step`,
  /// and inside a `Join`.
  ///
  /// Example:
  /// ```cpp
  /// model->set_on_gradient([&](const tandem::NamedTensor& parameter) {
  ///   optimizer.begin_step(parameter.tensor);
  /// });
  /// ```
  void begin_step(const at::Tensor& parameter);

  /// Brings the whole state to rank `to`, in host memory, until the next step:
  /// there `save` works then.
  /// **Collective**. **Throws** `ConfigError` if there is no such rank.
  void consolidate_state_dict(int64_t to = 0);

  /// Writes the whole state as the plain optimizer does, so that either reads
  /// it. Tensors are in host memory where the world is larger than one: for
  /// CUDA parameters the plain one is to be loaded with their device
  /// (`torch::load(optimizer, path, device)`).
  /// **Throws** `ConfigError` on a rank without a consolidated state.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads what this or the plain optimizer wrote, in a world of any size, and
  /// keeps this rank's share of the state, on the parameters' devices. Every
  /// rank calls it.
  void load(torch::serialize::InputArchive& archive) override;

  /// The optimizer inside, with this rank's share of the parameters and state.
  /// Its options are overwritten at each step.
  torch::optim::Optimizer& local_optimizer();
  /// The parameters that `rank` steps.
  std::vector<at::Tensor> shard(int64_t rank) const;

  /// Steps the share of a rank that has joined with the gradients and learning
  /// rates of a rank that has inputs. No group may be added in a `Join`.
  std::unique_ptr<comm::JoinHook> join_hook(
      const comm::JoinOptions& options) override;
  std::shared_ptr<comm::ProcessGroup> join_process_group() const override;

 private:
  class ShadowHook;

  ZeroRedundancyOptimizer(
      std::shared_ptr<comm::ProcessGroup> group,
      const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
      OptimizerFactory make,
      int64_t overlap_chunk_bytes);

  bool has_new_parameters() const;
  [[noreturn]] void refuse_new_group() const;
  /// Shares out what was added where only `Optimizer` saw it.
  void adopt_new_parameters();
  void share_out_new();
  std::vector<torch::optim::OptimizerParamGroup> groups_of(int64_t rank) const;
  std::vector<std::vector<at::Tensor>> shards() const;
  /// Steps and broadcasts; on a rank without inputs, by others' gradients.
  void update(bool has_inputs);
  void step_in_join(bool has_inputs);
  void lend_learning_rates(int64_t root);
  std::string tag() const;

  std::shared_ptr<comm::ProcessGroup> group_;
  OptimizerFactory make_;
  std::unique_ptr<detail::ShardPlan> plan_;
  /// The rank that steps each parameter, group by group.
  std::vector<std::vector<int64_t>> owners_;
  std::unique_ptr<torch::optim::Optimizer> local_;
  std::unique_ptr<detail::ShardBroadcast> broadcast_;
  int64_t overlap_chunk_bytes_;
  /// The next step, if some of it was taken ahead.
  std::unique_ptr<detail::OverlappedStep> overlapped_;
  /// Of each rank, as written by its optimizer inside; empty on ranks without.
  std::vector<std::string> consolidated_;
};

} // namespace tandem
