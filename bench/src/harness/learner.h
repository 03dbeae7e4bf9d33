#pragma once

#include <memory>
#include <optional>

#include <torch/data/example.h>
#include <torch/optim/sgd.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/dp/data_parallel.h>

#include "harness/bench_recipe.h"
#include "harness/mode.h"
#include "peers/gradient_peer.h"
#include "placement/placement.h"
#include "workloads/classifier.h"

namespace tandem::bench {

/// Of a step, in milliseconds.
struct CommunicationTimes {
  double all = 0;
  /// The part that backward hid.
  double hidden = 0;
};

enum class LossPlace { kOutside, kInReplica };

/// A network with its optimizer, bare or wrapped. Two of the same recipe start
/// with the same values. Batches may lie on the CPU.
class Learner {
 public:
  using Batch = torch::data::Example<>;

  /// The bare network on `device`.
  Learner(const BenchRecipe& recipe, at::Device device, at::ScalarType dtype);
  /// Wrapped as `worker` wants it, or bare with the peer that the mode is of.
  /// **Collective** over the worker's ranks.
  Learner(
      const BenchRecipe& recipe,
      const WorkerScope& worker,
      const Mode& mode,
      at::ScalarType dtype);

  /// One optimizer step on this process's rows; kInReplica needs a wrapper.
  /// **Collective** over the worker's ranks.
  void train_step(const Batch& batch, LossPlace loss_place);
  at::Tensor forward(const at::Tensor& data);
  void eval();

  /// The network inside.
  ClassifierImpl& net() {
    return *net_;
  }
  /// Of the wrapper; zero without one.
  Counters counters() const;
  /// Mean times of ddp's communication; empty without it.
  std::optional<CommunicationTimes> communication() const;
  /// Of the mode's hook; empty without one.
  std::optional<comm::HookTraffic> hook_traffic() const;
  /// The wrapper, if it is dp's; else null.
  std::shared_ptr<DataParallelImpl<ClassifierImpl>> data_parallel() const;

 private:
  at::Tensor mean_loss(const Batch& batch, LossPlace loss_place);

  std::shared_ptr<ClassifierImpl> net_;
  at::Device device_;
  /// Null: bare.
  std::shared_ptr<Parallel<ClassifierImpl>> wrapper_;
  /// Null: none.
  std::shared_ptr<comm::CommHook> hook_;
  /// Null: none.
  std::unique_ptr<GradientPeer> peer_;
  std::optional<torch::optim::SGD> optimizer_;
};

} // namespace tandem::bench
