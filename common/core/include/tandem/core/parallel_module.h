#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include <tandem/core/counters.h>
#include <tandem/core/sample_weight.h>

namespace tandem {

class ParallelModule;

/// Switches gradient synchronisation off until it is destroyed; nests.
class [[nodiscard]] NoSyncGuard {
 public:
  explicit NoSyncGuard(ParallelModule& module);
  ~NoSyncGuard();
  NoSyncGuard(NoSyncGuard&& other) noexcept;
  NoSyncGuard(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(NoSyncGuard&&) = delete;

 private:
  ParallelModule* module_;
};

/// Lets the ranks take different numbers of steps while it lives.
class UnevenInputs {
 public:
  UnevenInputs() = default;
  virtual ~UnevenInputs() = default;
  UnevenInputs(const UnevenInputs&) = delete;
  UnevenInputs& operator=(const UnevenInputs&) = delete;

  /// This process has no input left. Returns when no other has either.
  virtual void finish() {}
};

/// A module wrapped for data parallelism, whatever the strategy: what trainers
/// and harnesses drive. It owns the wrapped module and adds no parameter,
/// buffer or name of its own: `named_parameters()`, `save` and their kin show
/// the bare module, so that a checkpoint does not tell which wrapper wrote it.
/// Seen as a plain `torch::nn::Module&` the names carry `module.`, since
/// LibTorch's `named_*` are not virtual.
class ParallelModule : public torch::nn::Module {
 public:
  /// The wrapped module.
  const std::shared_ptr<torch::nn::Module>& module() const {
    return wrapped_;
  }

  /// "single", "dp" or "ddp".
  virtual std::string strategy() const = 0;
  /// Number of processes (ranks) that train together.
  virtual int64_t world_size() const;
  /// Index of this process among them.
  virtual int64_t rank() const;
  /// Number of replicas, over all processes, that share a global batch.
  virtual int64_t num_replicas() const;
  /// Where this process puts its inputs; inputs elsewhere are moved there.
  virtual at::Device device() const = 0;
  /// The batch dimension of inputs and outputs.
  virtual int64_t batch_dim() const;
  /// A paragraph: wrapper, devices, parameters and bytes, buckets, backend.
  virtual std::string describe() const = 0;
  virtual Counters counters() const = 0;

  /// While a guard lives, backward leaves gradients local (accumulation).
  NoSyncGuard no_sync();
  bool gradient_sync() const {
    return no_sync_depth_ == 0;
  }

  /// Sets how much this process's gradients count in the mean over the ranks,
  /// from the next forward on: after backward every rank has
  /// sum_r w_r g_r / sum_r w_r, where g_r is the gradient of rank r's loss. If
  /// that is the mean over its rows, `kRows` (the rows of the first input that
  /// has a batch dimension) makes it the gradient of the mean over all rows,
  /// however uneven. Default: `kEqual`.
  ///
  /// Where one process holds the whole batch, weights change nothing.
  /// `mean_loss`, which is exact by itself, takes no notice of them. Gradients
  /// that accumulated under `no_sync` count as the synchronised forward's do: a
  /// number is the weight of all of them together, and `kRows` adds up the rows
  /// of their forwards; so divide each part's loss by its share of them.
  /// **Collective** where it begins or ceases to weigh: all ranks do so before
  /// the same forward. Numbers may differ from rank to rank and 0 is one.
  /// **Throws** `ConfigError` for a number that is negative or not finite;
  /// `TimeoutError` naming the ranks that did not begin or cease.
  void set_sample_weight(SampleWeight weight);
  void set_sample_weight(double weight);

  /// Until its `finish`, ranks that have no input left take part in the others'
  /// steps. To be made before the first step and finished after the last;
  /// without `finish` the other ranks fail at their time limit.
  /// **Collective**: both.
  virtual std::unique_ptr<UnevenInputs> uneven_inputs();

  /// Sums `tensor` over all processes, in place.
  /// **Collective**: every rank, in the same order.
  virtual void all_reduce_sum_(at::Tensor& tensor);
  /// Overwrites `tensor` with that of `root`. **Collective**.
  virtual void broadcast_(at::Tensor& tensor, int64_t root = 0);
  /// Returns when every process has called it. **Collective**.
  virtual void barrier();

  // The bare module's view; these hide the non-virtual ones of Module.
  std::vector<at::Tensor> parameters(bool recurse = true) const;
  torch::OrderedDict<std::string, at::Tensor> named_parameters(
      bool recurse = true) const;
  std::vector<at::Tensor> buffers(bool recurse = true) const;
  torch::OrderedDict<std::string, at::Tensor> named_buffers(
      bool recurse = true) const;
  std::vector<std::shared_ptr<torch::nn::Module>> modules(
      bool include_self = true) const;
  torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>
  named_modules(
      const std::string& name_prefix = std::string(),
      bool include_self = true) const;
  std::vector<std::shared_ptr<torch::nn::Module>> children() const;
  torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>
  named_children() const;

  // Delegated to the wrapped module.
  void train(bool on = true) override;
  bool is_training() const noexcept override;
  void to(at::Device device, at::ScalarType dtype, bool non_blocking = false)
      override;
  void to(at::ScalarType dtype, bool non_blocking = false) override;
  void to(at::Device device, bool non_blocking = false) override;
  void zero_grad(bool set_to_none = true) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
  void pretty_print(std::ostream& stream) const override;
  bool is_serializable() const override;

 protected:
  /// **Throws** `ConfigError` if `module` is null. `name` is the wrapper's type
  /// for messages, such as "DataParallel".
  ParallelModule(std::string name, std::shared_ptr<torch::nn::Module> module);

  /// Tells apart the stretches of time in which `no_sync` guards live; none
  /// while `gradient_sync()`.
  std::optional<int64_t> no_sync_stretch() const;

  /// Mean over all rows of all processes, from this process's sum of losses.
  /// Its backward through the wrapper gives the gradient of that mean.
  /// **Collective** where there are several processes.
  /// `loss_sum`: 0-dim; `rows`: this process's, at least 0.
  virtual at::Tensor mean_over_ranks(const at::Tensor& loss_sum, int64_t rows);

  /// Makes sure that all ranks begin or cease to use sample weights.
  virtual void agree_on_sample_weights(bool are_used);

  const SampleWeighting& sample_weight() const {
    return sample_weight_;
  }

  /// Lets all ranks count the same while it lives.
  class EqualWeights {
   public:
    explicit EqualWeights(ParallelModule& module);
    ~EqualWeights();
    EqualWeights(const EqualWeights&) = delete;
    EqualWeights& operator=(const EqualWeights&) = delete;

   private:
    ParallelModule& module_;
    SampleWeighting kept_;
  };

 private:
  friend class NoSyncGuard;

  void change_sample_weight(SampleWeighting weight);

  std::shared_ptr<torch::nn::Module> wrapped_;
  int64_t no_sync_depth_ = 0;
  int64_t num_no_sync_stretches_ = 0;
  SampleWeighting sample_weight_ = SampleWeight::kEqual;
};

} // namespace tandem
