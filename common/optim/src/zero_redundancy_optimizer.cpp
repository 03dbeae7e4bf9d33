#include <tandem/optim/zero_redundancy_optimizer.h>

#include <cmath>
#include <limits>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <tandem/comm/comm.h>
#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "gradient_loan.h"
#include "optimizer_state.h"
#include "overlapped_step.h"
#include "shard_agreement.h"
#include "shard_broadcast.h"
#include "shard_plan.h"
#include "wrapped_options.h"

// Note [Two sets of parameter groups]
// The wrapper is an optimizer over all parameters, since LibTorch's schedulers,
// `zero_grad` and users look into its groups, which nothing can override. The
// one inside has the same groups with this rank's parameters only. What was
// changed outside reaches the inside at each step: options are copied, groups
// that have been added are shared out.

namespace tandem {

namespace {

using torch::optim::OptimizerParamGroup;

std::shared_ptr<comm::ProcessGroup> chosen_group(
    const ZeroRedundancyOptions& options) {
  return options.process_group() ? options.process_group()
                                 : comm::default_group();
}

std::vector<int64_t> sizes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> sizes;
  sizes.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    sizes.push_back(tensor.numel());
  }
  return sizes;
}

/// Not a number where the options know no learning rate.
double learning_rate_of(const torch::optim::OptimizerOptions& options) {
  try {
    return options.get_lr();
  } catch (const c10::Error&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

} // namespace

/// Takes the rank's part in the others' steps.
class ZeroRedundancyOptimizer::ShadowHook final : public comm::JoinHook {
 public:
  explicit ShadowHook(ZeroRedundancyOptimizer& optimizer)
      : optimizer_(optimizer) {}

  void main_hook() override {
    optimizer_.update(/*has_inputs=*/false);
  }

 private:
  ZeroRedundancyOptimizer& optimizer_;
};

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(
    const std::vector<OptimizerParamGroup>& param_groups,
    OptimizerFactory make,
    const ZeroRedundancyOptions& options)
    : ZeroRedundancyOptimizer(
          chosen_group(options),
          param_groups,
          std::move(make),
          options.overlap_chunk_bytes()) {}

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(
    const std::vector<at::Tensor>& parameters,
    OptimizerFactory make,
    const ZeroRedundancyOptions& options)
    : ZeroRedundancyOptimizer(
          std::vector<OptimizerParamGroup>{OptimizerParamGroup(parameters)},
          std::move(make),
          options) {}

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(
    std::shared_ptr<comm::ProcessGroup> group,
    const std::vector<OptimizerParamGroup>& param_groups,
    OptimizerFactory make,
    int64_t overlap_chunk_bytes)
    : Optimizer(
          std::vector<OptimizerParamGroup>(),
          detail::agree_on_optimizer(
              *group,
              param_groups,
              make,
              overlap_chunk_bytes)
              ->defaults()
              .clone()),
      group_(std::move(group)),
      make_(std::move(make)),
      plan_(std::make_unique<detail::ShardPlan>(group_->size())),
      overlap_chunk_bytes_(overlap_chunk_bytes) {
  for (const auto& param_group : param_groups) {
    Optimizer::add_param_group(param_group);
    owners_.push_back(plan_->add(sizes_of(param_group.params())));
  }
  local_ = make_(groups_of(group_->rank()));
  share_out_new();
}

ZeroRedundancyOptimizer::~ZeroRedundancyOptimizer() = default;

void ZeroRedundancyOptimizer::add_param_group(
    const OptimizerParamGroup& param_group) {
  if (overlapped_) {
    refuse_new_group();
  }
  auto parameters = detail::parameters_of(param_groups());
  parameters.push_back(param_group.params());
  detail::agree_on_parameters(*group_, parameters);
  Optimizer::add_param_group(param_group);
  share_out_new();
}

at::Tensor ZeroRedundancyOptimizer::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    const at::AutoGradMode with_grad(true);
    loss = closure();
  }
  comm::Join::notify(*this);
  update(/*has_inputs=*/true);
  return loss;
}

void ZeroRedundancyOptimizer::begin_step(const at::Tensor& parameter) {
  const at::NoGradGuard no_grad;
  if (comm::Join::options_of(*this) != nullptr) {
    throw ConfigError(fmt::format(
        "{} begin_step: expected no Join, whose ranks without inputs have no "
        "gradients, got one. Let step do it all there",
        tag()));
  }
  if (!overlapped_) {
    adopt_new_parameters();
    consolidated_.clear();
    detail::copy_options(*this, *local_);
    overlapped_ = std::make_unique<detail::OverlappedStep>(
        *group_,
        *local_,
        shards(),
        overlap_chunk_bytes_);
  }
  if (!overlapped_->begin(parameter)) {
    throw ConfigError(fmt::format(
        "{} begin_step: expected each parameter once before step, got one of "
        "sizes {} again. Accumulate gradients under no_sync",
        tag(),
        c10::str(parameter.sizes())));
  }
}

void ZeroRedundancyOptimizer::consolidate_state_dict(int64_t to) {
  if (to < 0 || to >= group_->size()) {
    throw ConfigError(fmt::format(
        "{} consolidate_state_dict: expected a rank from 0 to {}, got {}",
        tag(),
        group_->size() - 1,
        to));
  }
  consolidated_ =
      detail::gather_bytes(*group_, detail::state_to_bytes(*local_), to);
}

void ZeroRedundancyOptimizer::save(
    torch::serialize::OutputArchive& archive) const {
  if (group_->size() == 1) {
    const auto whole = make_(param_groups());
    for (const auto& [parameter, state] : local_->state()) {
      whole->state()[parameter] = state->clone();
    }
    whole->save(archive);
    return;
  }
  if (consolidated_.empty()) {
    throw ConfigError(fmt::format(
        "{} save: expected the whole state on this rank, got a share of it. "
        "Call consolidate_state_dict({}) on all ranks after the last step",
        tag(),
        group_->rank()));
  }
  const auto whole = make_(param_groups());
  for (int64_t rank = 0; rank < group_->size(); ++rank) {
    const auto share = make_(groups_of(rank));
    detail::state_from_bytes(
        consolidated_[static_cast<size_t>(rank)],
        at::kCPU,
        *share);
    detail::move_state(*share, *whole);
  }
  whole->save(archive);
}

void ZeroRedundancyOptimizer::load(torch::serialize::InputArchive& archive) {
  const auto whole = make_(param_groups());
  whole->load(archive);
  local_->state().clear();
  for (const auto& parameter : shard(group_->rank())) {
    auto* const key = parameter.unsafeGetTensorImpl();
    const auto found = whole->state().find(key);
    if (found != whole->state().end()) {
      local_->state()[key] = std::move(found->second);
    }
  }
  detail::state_to_parameters(*local_);
  detail::copy_options(*whole, *this);
  consolidated_.clear();
}

torch::optim::Optimizer& ZeroRedundancyOptimizer::local_optimizer() {
  return *local_;
}

std::vector<at::Tensor> ZeroRedundancyOptimizer::shard(int64_t rank) const {
  std::vector<at::Tensor> parameters;
  for (const auto& param_group : groups_of(rank)) {
    const auto& some = param_group.params();
    parameters.insert(parameters.end(), some.begin(), some.end());
  }
  return parameters;
}

std::unique_ptr<comm::JoinHook> ZeroRedundancyOptimizer::join_hook(
    const comm::JoinOptions& /*options*/) {
  return std::make_unique<ShadowHook>(*this);
}

std::shared_ptr<comm::ProcessGroup> ZeroRedundancyOptimizer::
    join_process_group() const {
  return group_;
}

/// Those of every group that the rank steps, in the group's order.
std::vector<OptimizerParamGroup> ZeroRedundancyOptimizer::groups_of(
    int64_t rank) const {
  std::vector<OptimizerParamGroup> groups;
  for (size_t i = 0; i < owners_.size(); ++i) {
    const auto& whole = param_groups()[i];
    std::vector<at::Tensor> share;
    for (size_t j = 0; j < owners_[i].size(); ++j) {
      if (owners_[i][j] == rank) {
        share.push_back(whole.params()[j]);
      }
    }
    groups.emplace_back(std::move(share), whole.options().clone());
  }
  return groups;
}

std::vector<std::vector<at::Tensor>> ZeroRedundancyOptimizer::shards() const {
  std::vector<std::vector<at::Tensor>> shards;
  for (int64_t rank = 0; rank < group_->size(); ++rank) {
    shards.push_back(shard(rank));
  }
  return shards;
}

void ZeroRedundancyOptimizer::refuse_new_group() const {
  throw ConfigError(fmt::format(
      "{} add_param_group: expected the parameters that there were at "
      "begin_step until step, got more. Add groups between step and the next "
      "begin_step",
      tag()));
}

bool ZeroRedundancyOptimizer::has_new_parameters() const {
  bool is_new = param_groups().size() != owners_.size();
  for (size_t i = 0; i < owners_.size(); ++i) {
    const size_t num_known = owners_[i].size();
    const size_t num_now = param_groups().at(i).params().size();
    if (num_now < num_known) {
      throw ConfigError(fmt::format(
          "{} parameter group {}: expected {} parameters as before, got {}. "
          "Make a new optimizer without the others",
          tag(),
          i,
          num_known,
          num_now));
    }
    is_new = is_new || num_now != num_known;
  }
  return is_new;
}

void ZeroRedundancyOptimizer::adopt_new_parameters() {
  if (has_new_parameters()) {
    detail::agree_on_parameters(*group_, detail::parameters_of(param_groups()));
    share_out_new();
  }
}

void ZeroRedundancyOptimizer::share_out_new() {
  while (owners_.size() < param_groups().size()) {
    const auto& param_group = param_groups()[owners_.size()];
    owners_.emplace_back();
    local_->add_param_group(
        OptimizerParamGroup({}, param_group.options().clone()));
  }
  for (size_t i = 0; i < owners_.size(); ++i) {
    const auto& params = param_groups()[i].params();
    const auto num_known = static_cast<int64_t>(owners_[i].size());
    const std::vector<at::Tensor> more(
        params.begin() + num_known,
        params.end());
    const auto ranks = plan_->add(sizes_of(more));
    owners_[i].insert(owners_[i].end(), ranks.begin(), ranks.end());
    for (size_t j = 0; j < more.size(); ++j) {
      if (ranks[j] == group_->rank()) {
        local_->param_groups()[i].params().push_back(more[j]);
      }
    }
  }
  broadcast_ = std::make_unique<detail::ShardBroadcast>(shards());
  consolidated_.clear();
}

void ZeroRedundancyOptimizer::update(bool has_inputs) {
  const at::NoGradGuard no_grad;
  if (overlapped_ && has_new_parameters()) {
    refuse_new_group();
  }
  adopt_new_parameters();
  consolidated_.clear();
  if (overlapped_) {
    overlapped_->finish();
    overlapped_ = nullptr;
    return;
  }
  if (comm::Join::options_of(*this) != nullptr) {
    step_in_join(has_inputs);
  } else {
    detail::copy_options(*this, *local_);
    local_->step();
  }
  broadcast_->start(*group_);
  broadcast_->finish(*group_);
}

void ZeroRedundancyOptimizer::step_in_join(bool has_inputs) {
  auto joined = at::zeros({group_->size()}, at::kLong); // [ranks]
  joined[group_->rank()] = static_cast<int64_t>(!has_inputs);
  group_->all_reduce(joined);
  // The first rank that has inputs lends to those without.
  const auto lender = joined.argmin().item<int64_t>();
  std::vector<std::unique_ptr<detail::GradientLoan>> loans;
  for (int64_t rank = 0; rank < group_->size(); ++rank) {
    if (joined[rank].item<bool>()) {
      loans.push_back(std::make_unique<detail::GradientLoan>(
          *group_,
          lender,
          rank,
          shard(rank)));
    }
  }
  if (!loans.empty()) {
    lend_learning_rates(lender);
  }
  detail::copy_options(*this, *local_);
  local_->step();
}

void ZeroRedundancyOptimizer::lend_learning_rates(int64_t root) {
  std::vector<double> own;
  for (const auto& param_group : param_groups()) {
    own.push_back(learning_rate_of(param_group.options()));
  }
  auto rates = at::tensor(own, at::kDouble); // [groups]
  group_->broadcast(rates, root);
  for (size_t i = 0; i < own.size(); ++i) {
    const auto rate = rates[static_cast<int64_t>(i)].item<double>();
    if (!std::isnan(rate) && rate != own[i]) {
      param_groups()[i].options().set_lr(rate);
    }
  }
}

std::string ZeroRedundancyOptimizer::tag() const {
  return comm::rank_tag("zero", group_->rank(), group_->size());
}

} // namespace tandem
