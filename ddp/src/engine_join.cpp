#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <tandem/comm/join.h>
#include <tandem/core/errors.h>
#include <tandem/ddp/detail/engine.h>

#include "flat_broadcast.h"
#include "gradient_hooks.h"
#include "gradient_weight.h"
#include "module_tensors.h"
#include "rank_statistics.h"
#include "rank_text.h"
#include "reducer.h"

namespace tandem::detail {

namespace {

/// A world of one has nobody to wait for.
class NothingToShadow final : public comm::JoinHook {};

class JoinOfOne final : public UnevenInputs {
 public:
  explicit JoinOfOne(comm::Joinable& joinable) : join_({&joinable}) {}

  void finish() override {
    join_.finish();
  }

 private:
  comm::Join join_;
};

} // namespace

/// Takes the engine's part in the others' steps.
class DistributedEngine::ShadowHook final : public comm::JoinHook {
 public:
  ShadowHook(
      DistributedEngine& engine,
      const comm::JoinOptions& options,
      std::function<SampleWeighting()> weighting)
      : engine_(engine), options_(options), weighting_(std::move(weighting)) {}

  void main_hook() override {
    engine_.shadow(weighting_(), options_);
  }
  void post_hook(bool is_last_joiner) override {
    engine_.adopt_final_model(is_last_joiner);
  }

 private:
  DistributedEngine& engine_;
  comm::JoinOptions options_;
  std::function<SampleWeighting()> weighting_;
};

std::unique_ptr<comm::JoinHook> DistributedEngine::join_hook(
    const comm::JoinOptions& options,
    std::function<SampleWeighting()> weighting) {
  if (!reducer_) {
    return std::make_unique<NothingToShadow>();
  }
  if (rank_statistics_) {
    throw ConfigError(fmt::format(
        "{} Join: expected a module without SyncBatchNorm, whose layers wait "
        "for every rank in forward, got {} of them. Use BatchNorm with "
        "BufferPolicy::kMerge, or give every rank as many batches",
        rank_tag(*group_),
        tensors_->num_sync_batch_norms));
  }
  return std::make_unique<ShadowHook>(*this, options, std::move(weighting));
}

DistributedEngine::JoinRound DistributedEngine::meet(
    bool has_inputs,
    bool is_synchronised) {
  auto told = at::tensor(
      {int64_t(is_synchronised), has_inputs ? group_->rank() : int64_t(-1)},
      at::kLong); // [2]
  group_->all_reduce(told, comm::ReduceOp::kMax);
  count(told);
  return {told[0].item<int64_t>() != 0, told[1].item<int64_t>()};
}

void DistributedEngine::shadow(
    const SampleWeighting& weighting,
    const comm::JoinOptions& options) {
  const auto round = meet(/*has_inputs=*/false, /*is_synchronised=*/false);
  if (!round.is_synchronised) {
    return;
  }
  const bool is_reduced = reducer_->prepare_shadow();
  const auto* equal = std::get_if<SampleWeight>(&weighting);
  const bool is_weighed = !options.divide_by_initial_world_size() ||
      equal == nullptr || *equal != SampleWeight::kEqual;
  const auto weight =
      weigh(is_weighed && is_reduced ? std::optional<double>(0) : std::nullopt);
  if (buffers_) {
    buffers_->run(*group_, counters_, round.root);
  }
  if (statistics_) {
    statistics_->begin();
    merge_statistics(/*rows=*/0);
  }
  if (weight) {
    static_cast<void>(weight->sum());
  }
  if (is_reduced) {
    reducer_->shadow();
  }
}

void DistributedEngine::adopt_final_model(bool is_last_joiner) {
  auto root = at::tensor(
      {is_last_joiner ? group_->rank() : int64_t(-1)},
      at::kLong); // [1]
  group_->all_reduce(root, comm::ReduceOp::kMax);
  count(root);
  FlatBroadcast(tensors_->handles())
      .run(*group_, counters_, root.item<int64_t>());
}

void DistributedEngine::set_on_gradient(
    std::function<void(const NamedTensor&)> function) {
  if (function && on_gradient_) {
    throw ConfigError(fmt::format(
        "{} set_on_gradient: expected one function at a time, got a second. "
        "Destroy the OptimizerInBackward that there is first",
        rank_tag(*group_)));
  }
  on_gradient_ = std::move(function);
  if (reducer_) {
    reducer_->set_on_reduced(
        on_gradient_
            ? [this](size_t index) { on_gradient_(tensors_->trained[index]); }
            : std::function<void(size_t)>());
  } else if (on_gradient_) {
    own_hooks_ = std::make_unique<GradientHooks>(
        tensors_->trained,
        [this](size_t index, bool /*is_defined*/) {
          const auto& parameter = tensors_->trained[index];
          if (is_synchronised_ && parameter.tensor.grad().defined()) {
            on_gradient_(parameter);
          }
        });
  } else {
    own_hooks_ = nullptr;
  }
}

std::unique_ptr<UnevenInputs> join_uneven_inputs(comm::Joinable& joinable) {
  return std::make_unique<JoinOfOne>(joinable);
}

} // namespace tandem::detail
