#include <tandem/ddp/detail/engine.h>

#include <utility>
#include <variant>

#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <tandem/comm/agreement.h>
#include <tandem/comm/comm.h>
#include <tandem/core/batch_rows.h>
#include <tandem/core/errors.h>
#include <tandem/core/statistics_group.h>
#include <tandem/core/tree_visitors.h>

#include <tandem/core/detail/registration_check.h>

#include "divergence_check.h"
#include "flat_broadcast.h"
#include "gradient_hooks.h"
#include "gradient_weight.h"
#include "loss_mean.h"
#include "module_agreement.h"
#include "module_checks.h"
#include "module_tensors.h"
#include "rank_statistics.h"
#include "rank_text.h"
#include "reducer.h"

namespace tandem::detail {

namespace {

constexpr int64_t kBatchDim = 0;
constexpr auto kConversionRemedy = "Convert the module before it is wrapped";

std::shared_ptr<comm::ProcessGroup> group_for(
    const DistributedDataParallelOptions& options) {
  return options.process_group() ? options.process_group()
                                 : comm::default_group();
}

/// Runs this rank's own checks; a failure is told to the others, who would
/// otherwise wait for this rank.
void check_alone(
    const ModuleTensors& tensors,
    at::Device device,
    bool spans_devices,
    const DistributedDataParallelOptions& options,
    comm::ProcessGroup& group) {
  try {
    check_options(options, group);
    check_names(tensors, options, group);
    check_tensors(tensors, device, spans_devices, group);
  } catch (...) {
    report_unfit(group, message_of(std::current_exception()));
    throw;
  }
}

/// `device` as tensors name it: the CPU without an index, others with one.
at::Device as_tensors_do(at::Device device) {
  if (device.is_cpu()) {
    return at::kCPU;
  }
  return device.has_index()
      ? device
      : c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

/// The first parameter or floating-point buffer of another type, or null.
const NamedTensor* find_other_dtype(
    const ModuleTensors& tensors,
    at::ScalarType dtype) {
  for (const auto* group : {&tensors.parameters, &tensors.buffers}) {
    for (const auto& named : *group) {
      if (named.tensor.scalar_type() != dtype &&
          (group == &tensors.parameters || named.tensor.is_floating_point())) {
        return &named;
      }
    }
  }
  return nullptr;
}

} // namespace

DistributedEngine::DistributedEngine(
    const std::shared_ptr<torch::nn::Module>& module,
    const DistributedDataParallelOptions& options)
    : options_(options),
      group_(group_for(options)),
      device_(as_tensors_do(options.device().value_or(group_->device()))),
      tensors_(std::make_unique<ModuleTensors>(*module, options)) {
  spans_devices_ =
      !options_.device() && lies_on_several(*tensors_, device_.type());
  check_alone(*tensors_, device_, spans_devices_, options_, *group_);
  if (group_->size() == 1 && !options_.reduce_at_world_one()) {
    return;
  }
  agree_on_module(*group_, *tensors_, device_, options_);
  if (options_.init_sync()) {
    FlatBroadcast(tensors_->handles()).run(*group_, counters_);
  }
  if (options_.buffer_policy() != BufferPolicy::kNone) {
    buffers_ = std::make_unique<FlatBroadcast>(tensors_->buffer_handles());
  }
  if (options_.buffer_policy() == BufferPolicy::kMerge) {
    statistics_ = std::make_unique<NormStatistics>(*module);
    if (statistics_->empty()) {
      statistics_ = nullptr;
    }
  }
  if (tensors_->num_sync_batch_norms > 0) {
    rank_statistics_ = std::make_shared<RankStatistics>(*group_, *module);
  }
  registrations_ = std::make_unique<RegistrationCheck>(
      module,
      rank_tag(*group_),
      "Its gradients would not be averaged");
  reducer_ = std::make_shared<Reducer>(group_, *tensors_, options_);
  divergence_ = std::make_unique<DivergenceCheck>(
      group_,
      tensors_->parameters,
      options_.divergence_check_every());
}

DistributedEngine::~DistributedEngine() = default;

void DistributedEngine::run(
    ForwardCall& call,
    torch::nn::Module& module,
    const Synchronisation& synchronisation,
    comm::Joinable& self) {
  if (at::GradMode::is_enabled()) {
    is_synchronised_ = synchronisation.is_on;
  }
  if (reducer_ && at::GradMode::is_enabled()) {
    run_recorded(call, module, synchronisation, self);
  } else {
    invoke(call, module, std::nullopt);
  }
  ++counters_.forwards;
}

void DistributedEngine::invoke(
    ForwardCall& call,
    torch::nn::Module& module,
    std::optional<double> weight) {
  const auto seat = rank_statistics_ ? rank_statistics_->seat(weight) : nullptr;
  std::optional<StatisticsScope> scope;
  if (seat) {
    scope.emplace(seat.get());
  }
  if (spans_devices_) {
    call.invoke(module);
  } else {
    invoke_on(call, module, device_);
  }
}

void DistributedEngine::run_recorded(
    ForwardCall& call,
    torch::nn::Module& module,
    const Synchronisation& synchronisation,
    comm::Joinable& self) {
  TensorCollector inputs;
  call.visit_inputs(inputs);
  const auto rows = batch_rows(inputs.tensors, kBatchDim);
  registrations_->check();
  comm::Join::notify(self);
  const auto* join = comm::Join::options_of(self);
  is_in_join_ = join != nullptr;
  const int64_t root =
      is_in_join_ ? meet(/*has_inputs=*/true, synchronisation.is_on).root : 0;
  const bool is_reduced = reducer_->prepare_forward(synchronisation.is_on);
  auto weight = weight_of(synchronisation, rows);
  if (is_in_join_ && !join->divide_by_initial_world_size() && !weight) {
    weight = 1;
  }
  if (!synchronisation.is_on) {
    invoke(call, module, weight);
    return;
  }
  if (divergence_ && !is_in_join_) {
    divergence_->step();
  }
  accumulated_rows_ = 0;
  if (is_reduced) {
    reducer_->weigh(weigh(weight));
  }
  if (buffers_) {
    buffers_->run(*group_, counters_, root);
  }
  if (statistics_) {
    statistics_->begin();
  }
  invoke(call, module, weight);
  if (statistics_) {
    merge_statistics(rows.value_or(1));
  }
  if (is_reduced) {
    TensorCollector outputs;
    call.visit_output(outputs);
    reducer_->watch(outputs.tensors);
  }
}

/// The weight of the gradients of this forward and those that accumulated
/// before; absent: that of any rank.
std::optional<double> DistributedEngine::weight_of(
    const Synchronisation& synchronisation,
    std::optional<int64_t> rows) {
  if (const auto* number = std::get_if<double>(&synchronisation.weight)) {
    return *number;
  }
  if (std::get<SampleWeight>(synchronisation.weight) == SampleWeight::kEqual) {
    accumulated_rows_ = 0;
    return std::nullopt;
  }
  if (!rows) {
    throw ShapeError(fmt::format(
        "{} sample weight: expected an input with rows to count, got none. Set "
        "a number, set_sample_weight(rows)",
        rank_tag(*group_)));
  }
  accumulated_rows_ += *rows;
  return static_cast<double>(accumulated_rows_);
}

std::shared_ptr<GradientWeight> DistributedEngine::weigh(
    std::optional<double> weight) {
  if (!weight) {
    return nullptr;
  }
  ++counters_.collectives;
  counters_.bytes_moved += sizeof(double);
  return std::make_shared<GradientWeight>(group_, *weight);
}

void DistributedEngine::agree_on_sample_weights(bool are_used) {
  if (!reducer_) {
    return;
  }
  if (are_used && options_.reduce_op() == comm::ReduceOp::kSum) {
    throw ConfigError(fmt::format(
        "{} set_sample_weight: expected the option reduce_op to be kMean, got "
        "kSum, in which all rows count the same",
        rank_tag(*group_)));
  }
  try {
    comm::agree_or_throw(
        *group_,
        "ddp",
        {{"sample weight", are_used ? "in use" : "equal"}});
  } catch (PeerError& error) {
    error.add_context(
        "set_sample_weight: expected every rank to begin to weigh, or to "
        "cease, "
        "before the same forward");
    throw;
  }
}

void DistributedEngine::merge_statistics(int64_t rows) {
  auto sum = statistics_->contribution(rows);
  group_->all_reduce(sum);
  count(sum);
  statistics_->adopt(sum);
}

at::Tensor DistributedEngine::mean_over_ranks(
    const at::Tensor& loss_sum,
    int64_t rows) {
  if (group_->size() == 1) {
    return loss_sum / rows;
  }
  if (is_in_join_) {
    throw ConfigError(fmt::format(
        "{} mean_loss: expected outside of Join, whose joined ranks have no "
        "rows to add, got inside. Use forward, with "
        "set_sample_weight(SampleWeight::kRows) for the mean over all rows",
        rank_tag(*group_)));
  }
  LossMean loss(loss_sum, rows);
  all_reduce_sum_(loss.sums());
  return loss.mean(group_->size());
}

void DistributedEngine::all_reduce_sum_(at::Tensor& tensor) {
  if (group_->size() > 1) {
    group_->all_reduce(tensor);
    count(tensor);
  }
}

void DistributedEngine::broadcast_(at::Tensor& tensor, int64_t root) {
  if (group_->size() > 1) {
    group_->broadcast(tensor, root);
    count(tensor);
  }
}

void DistributedEngine::barrier() {
  if (group_->size() > 1) {
    group_->barrier();
  }
}

void DistributedEngine::count(const at::Tensor& tensor) {
  ++counters_.collectives;
  counters_.bytes_moved += static_cast<int64_t>(tensor.nbytes());
}

void DistributedEngine::refuse_conversion(
    std::optional<at::Device> device,
    std::optional<at::ScalarType> dtype) const {
  if (device && as_tensors_do(*device) != device_) {
    throw ConfigError(fmt::format(
        "{} to: device: expected {}, where the module was wrapped, got {}. {}",
        rank_tag(*group_),
        device_.str(),
        device->str(),
        kConversionRemedy));
  }
  const auto* other = dtype ? find_other_dtype(*tensors_, *dtype) : nullptr;
  if (other != nullptr) {
    throw ConfigError(fmt::format(
        "{} to: '{}': expected {}, as when it was wrapped, got {}. {}",
        rank_tag(*group_),
        other->name,
        at::toString(other->tensor.scalar_type()),
        at::toString(*dtype),
        kConversionRemedy));
  }
}

void DistributedEngine::register_comm_hook(
    std::shared_ptr<comm::CommHook> hook) {
  if (!hook) {
    throw ConfigError(fmt::format(
        "{} register_comm_hook: expected a hook, got null",
        rank_tag(*group_)));
  }
  if (reducer_) {
    const bool may_differ = !hook->keeps_ranks_equal();
    reducer_->register_hook(std::move(hook));
    if (may_differ) {
      divergence_ = nullptr;
    }
  }
}

} // namespace tandem::detail
