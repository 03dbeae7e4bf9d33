#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include <tandem/core/counters.h>

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

 private:
  friend class NoSyncGuard;

  std::shared_ptr<torch::nn::Module> wrapped_;
  int64_t no_sync_depth_ = 0;
  int64_t num_no_sync_stretches_ = 0;
};

} // namespace tandem
