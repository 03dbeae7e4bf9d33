#include "rank_statistics.h"

#include <algorithm>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/sibling_group.h>
#include <tandem/core/errors.h>
#include <tandem/core/sync_batch_norm.h>

#include "rank_text.h"

namespace tandem::detail {

// Note [Statistics over ranks]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Forward: each rank writes its moments into its row of a zero matrix, and the
// sum of these matrices is every rank's rows. All combine them alike, so all
// have the same bits.
//
// Backward: what DDP averages is the gradient of each rank's own loss along its
// own rows. The statistics carry other ranks' losses to these rows too, so the
// gradient of the total is summed over the ranks before it is split. Where
// ranks are weighed, DDP multiplies what comes back by this rank's weight; what
// came from others has to arrive by theirs: sum_q w_q g_q / w_r. A rank of
// weight 0 adds nothing, its rows' share in the statistics included.
//
// The same holds for the gradient of that gradient: seen as gradients of the
// ranks' own losses, the weighted sum's derivative is the plain sum, and the
// plain sum's the weighted one.

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kCall = "call";

/// One call of a layer, as the graph remembers it.
struct Call : torch::CustomClassHolder {
  Call(
      std::shared_ptr<RankStatistics> in_ranks,
      std::string in_name,
      double in_weight)
      : ranks(std::move(in_ranks)),
        name(std::move(in_name)),
        weight(in_weight) {}

  at::Tensor sum(const at::Tensor& own, bool is_weighted) const {
    const auto what = fmt::format("backward of SyncBatchNorm {}", name);
    if (!is_weighted) {
      return ranks->sum(own, what);
    }
    return ranks->sum(own * weight, what).mul_(weight > 0 ? 1 / weight : 0.0);
  }

  std::shared_ptr<RankStatistics> ranks;
  std::string name;
  double weight;
};

using CallPtr = c10::intrusive_ptr<Call>;

void keep(AutogradContext& context, const CallPtr& call) {
  context.saved_data[kCall] = c10::IValue::make_capsule(call);
}

CallPtr kept(const AutogradContext& context) {
  return c10::static_intrusive_pointer_cast<Call>(
      context.saved_data.at(kCall).toCapsule());
}

class SumOverRanks : public torch::autograd::Function<SumOverRanks> {
 public:
  static at::Tensor forward(
      AutogradContext* context,
      const at::Tensor& own,
      const CallPtr& call,
      bool is_weighted) {
    keep(*context, call);
    context->saved_data["is_weighted"] = is_weighted;
    return call->sum(own, is_weighted);
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& grads) {
    const bool is_weighted = context->saved_data["is_weighted"].toBool();
    return {
        SumOverRanks::apply(grads.front(), kept(*context), !is_weighted),
        {},
        {}};
  }
};

/// The derivative of `combine_moments` by one part, of the ranks' total.
class CombineOverRanks : public torch::autograd::Function<CombineOverRanks> {
 public:
  static at::Tensor forward(
      AutogradContext* context,
      const at::Tensor& own,
      const CallPtr& call,
      const at::Tensor& parts) {
    keep(*context, call);
    auto total = combine_moments(parts).packed;
    context->save_for_backward({own, total});
    return total;
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const BatchMoments own{saved[0]};
    const BatchMoments total{saved[1]};
    const BatchMoments grad{
        SumOverRanks::apply(grads.front(), kept(*context), true)};
    const auto of_mean =
        grad.mean() * own.count() / total.count().clamp_min(1) +
        grad.m2() * (own.mean() - total.mean()) * (2 * own.count());
    return {
        at::cat(
            {at::zeros_like(own.packed.narrow(0, 0, 1)), of_mean, grad.m2()}),
        {},
        {}};
  }
};

class Seat final : public StatisticsGroup {
 public:
  Seat(
      std::shared_ptr<RankStatistics> ranks,
      double weight,
      bool is_recomputation)
      : ranks_(std::move(ranks)),
        weight_(weight),
        is_recomputation_(is_recomputation) {}

  BatchMoments combine(const torch::nn::Module& layer, const BatchMoments& own)
      override {
    if (!layer.is_training()) {
      return own;
    }
    const auto parts = ranks_->gather(own.packed.detach(), layer);
    return {CombineOverRanks::apply(
        own.packed,
        c10::make_intrusive<Call>(ranks_, ranks_->name_of(layer), weight_),
        parts)};
  }

  std::shared_ptr<StatisticsGroup> for_recomputation() override {
    return std::make_shared<Seat>(ranks_, weight_, true);
  }
  bool is_recomputation() const override {
    return is_recomputation_;
  }

 private:
  std::shared_ptr<RankStatistics> ranks_;
  double weight_;
  bool is_recomputation_;
};

std::vector<std::pair<const torch::nn::Module*, std::string>>
sync_batch_norms_of(const torch::nn::Module& module) {
  std::vector<std::pair<const torch::nn::Module*, std::string>> layers;
  if (module.as<SyncBatchNormImpl>() != nullptr) {
    layers.emplace_back(&module, "that was wrapped");
  }
  for (const auto& item :
       module.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    if (item.value()->as<SyncBatchNormImpl>() != nullptr) {
      layers.emplace_back(item.value().get(), fmt::format("'{}'", item.key()));
    }
  }
  return layers;
}

} // namespace

RankStatistics::RankStatistics(
    comm::ProcessGroup& group,
    const torch::nn::Module& module)
    : group_(comm::sibling_group(group)),
      layers_(sync_batch_norms_of(module)) {}

std::shared_ptr<StatisticsGroup> RankStatistics::seat(
    std::optional<double> weight) {
  return std::make_shared<Seat>(
      shared_from_this(),
      weight.value_or(1.0),
      /*is_recomputation=*/false);
}

at::Tensor RankStatistics::gather(
    const at::Tensor& own,
    const torch::nn::Module& layer) {
  const int64_t index = index_of(layer);
  // The last column tells the layer.
  const auto rows = at::zeros({group_->size(), own.numel() + 1}, own.options());
  const auto row = rows.select(0, group_->rank());
  row.narrow(0, 0, own.numel()).copy_(own);
  row.narrow(0, own.numel(), 1).fill_(index);
  all_reduce(rows, fmt::format("SyncBatchNorm {}", name_of(layer)));
  // On CUDA to look would stall the host.
  if (!rows.is_cuda()) {
    check_same_layer(rows.select(1, own.numel()), index);
  }
  return rows.narrow(1, 0, own.numel());
}

at::Tensor RankStatistics::sum(const at::Tensor& own, const std::string& what) {
  auto total = own.contiguous().clone();
  all_reduce(total, what);
  return total;
}

Counters RankStatistics::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void RankStatistics::all_reduce(
    const at::Tensor& tensor,
    const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  group_->wait(group_->all_reduce_async(tensor), what);
  ++counters_.collectives;
  counters_.bytes_moved += static_cast<int64_t>(tensor.nbytes());
}

int64_t RankStatistics::index_of(const torch::nn::Module& layer) const {
  const auto found =
      std::find_if(layers_.begin(), layers_.end(), [&](const auto& known) {
        return known.first == &layer;
      });
  return found - layers_.begin();
}

std::string RankStatistics::name_of(const torch::nn::Module& layer) const {
  return name_at(index_of(layer));
}

std::string RankStatistics::name_at(int64_t index) const {
  return std::cmp_less(index, layers_.size())
      ? layers_[static_cast<size_t>(index)].second
      : std::string("that is not registered");
}

void RankStatistics::check_same_layer(const at::Tensor& indices, int64_t own)
    const {
  if (indices.eq(own).all().item<bool>()) {
    return;
  }
  std::string places;
  for (int64_t rank = 0; rank < group_->size(); ++rank) {
    places += fmt::format(
        "{}rank {} at the layer {}",
        rank == 0 ? "" : ", ",
        rank,
        name_at(indices[rank].item<int64_t>()));
  }
  throw Error(fmt::format(
      "{} SyncBatchNorm: expected all ranks at the same layer, got {}. Call "
      "the same SyncBatchNorm layers in the same order on every rank",
      rank_tag(*group_),
      places));
}

int64_t count_sync_batch_norms(const torch::nn::Module& module) {
  return static_cast<int64_t>(sync_batch_norms_of(module).size());
}

} // namespace tandem::detail
