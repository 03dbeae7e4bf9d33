#include <tandem/dp/data_parallel.h>

#include <atomic>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/batch_rows.h>
#include <tandem/core/errors.h>
#include <tandem/core/named_tensors.h>
#include <tandem/core/tree_visitors.h>

#include "device_balance.h"
#include "device_list.h"
#include "forward_memory.h"
#include "gather.h"
#include "gradient_bridge.h"
#include "keep_gradients.h"
#include "measure_memory.h"
#include "parallel_apply.h"
#include "replica_set.h"
#include "scatter.h"
#include "statistics_meeting.h"
#include "statistics_merge.h"

namespace tandem::detail {

namespace {

/// Marks a call as running; refuses a second one at the same time.
class OneCallGuard {
 public:
  explicit OneCallGuard(std::atomic<bool>& running) : running_(running) {
    if (running_.exchange(true)) {
      throw ConfigError(
          "DataParallel: expected one call at a time, got a second one while "
          "forward or refresh runs. Call the wrapper from one thread, and not "
          "from the wrapped module's own forward");
    }
  }
  ~OneCallGuard() {
    running_ = false;
  }
  OneCallGuard(const OneCallGuard&) = delete;
  OneCallGuard& operator=(const OneCallGuard&) = delete;

 private:
  std::atomic<bool>& running_;
};

/// Checks what can be checked without the module.
DataParallelOptions checked(const DataParallelOptions& options) {
  if (options.dim() < 0) {
    throw ConfigError(fmt::format(
        "DataParallel: dim: expected a dimension counted from the front (0 or "
        "more), got {}",
        options.dim()));
  }
  if (options.bucket_cap_bytes() <= 0) {
    throw ConfigError(fmt::format(
        "DataParallel: bucket_cap_bytes: expected more than 0, got {}",
        options.bucket_cap_bytes()));
  }
  return options;
}

const char* refresh_text(RefreshPolicy policy) {
  switch (policy) {
    case RefreshPolicy::kChecked:
      return "whenever parameters may have changed, bytes compared";
    case RefreshPolicy::kAlways:
      return "at every forward";
    case RefreshPolicy::kVersions:
      return "after a backward or a change of version or address";
    case RefreshPolicy::kManual:
      return "by refresh() only";
  }
  return "";
}

const char* buffer_text(BufferPolicy policy) {
  switch (policy) {
    case BufferPolicy::kFirst:
      return "buffers at every forward";
    case BufferPolicy::kMerge:
      return "buffers at every forward, after which statistics are merged";
    case BufferPolicy::kNone:
      break;
  }
  return "buffers by refresh() only";
}

/// Of each chunk; 1 for chunks without any.
std::vector<int64_t> rows_of(const ScatteredInputs& chunks, int64_t dim) {
  std::vector<int64_t> rows;
  rows.reserve(chunks.size());
  for (const auto& chunk : chunks) {
    rows.push_back(batch_rows(chunk, dim).value_or(1));
  }
  return rows;
}

std::string join_names(const std::vector<at::Device>& devices) {
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const auto& device : devices) {
    names.push_back(device.str());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

} // namespace

struct DataParallelEngine::State {
  State(
      const std::shared_ptr<torch::nn::Module>& module,
      const DataParallelOptions& options)
      : dim(checked(options).dim()),
        bucket_cap_bytes(options.bucket_cap_bytes()),
        refresh_policy(options.refresh_policy()),
        buffer_policy(options.buffer_policy()),
        devices(resolve_devices(options)),
        output_device(resolve_output_device(options, devices.front())),
        counts(std::make_shared<TransferCounts>()),
        replicas(module, devices, options, counts),
        sync_layers(sync_batch_norm_names(replicas.modules())),
        bridge(
            replicas.tensors(),
            devices,
            bucket_cap_bytes,
            make_ordered_device_sum(devices.front(), counts)),
        memory(devices, output_device) {
    warn_of_imbalance(devices);
    if (!has_one_device()) {
      bridge.update();
    }
    if (buffer_policy == BufferPolicy::kMerge) {
      statistics.emplace(replicas.modules());
    }
    for (size_t replica = 1; replica < devices.size(); ++replica) {
      workers.push_back(std::make_unique<WorkerThread>());
    }
  }

  bool has_one_device() const {
    return devices.size() == 1;
  }
  void run_alone(ForwardCall& call);
  /// Returns the number of replicas that ran.
  size_t run_replicas(
      ForwardCall& call,
      std::optional<int64_t> no_sync_stretch);

  int64_t dim;
  int64_t bucket_cap_bytes;
  RefreshPolicy refresh_policy;
  BufferPolicy buffer_policy;
  std::vector<at::Device> devices;
  at::Device output_device;
  std::shared_ptr<TransferCounts> counts;
  ReplicaSet replicas;
  LayerNames sync_layers;
  /// Absent but for `BufferPolicy::kMerge`.
  std::optional<StatisticsMerge> statistics;
  GradientBridge bridge;
  /// Of replica 1, 2, ...
  std::vector<std::unique_ptr<WorkerThread>> workers;
  ForwardMemory memory;
  bool has_warned_of_scalars = false;
  std::atomic<bool> is_running{false};
  std::atomic<int64_t> forwards{0};
};

void DataParallelEngine::State::run_alone(ForwardCall& call) {
  invoke_on(call, *replicas.modules().front(), devices.front());
  if (output_device != devices.front()) {
    move_output(call, output_device);
  }
}

size_t DataParallelEngine::State::run_replicas(
    ForwardCall& call,
    std::optional<int64_t> no_sync_stretch) {
  const auto inputs = scatter(call, devices, dim, *counts);
  if (inputs.size() > 1) {
    memory.pause();
    replicas.before_forward(no_sync_stretch);
    bridge.update();
    if (statistics) {
      statistics->begin();
    }
    memory.resume();
  }
  call.make_chunks(inputs.size());
  for (size_t chunk = 0; chunk < inputs.size(); ++chunk) {
    TensorReplacer replacer(inputs[chunk]);
    call.write_chunk_inputs(chunk, replacer);
  }
  const auto apply = [&] {
    parallel_apply(
        call,
        inputs.size(),
        replicas.modules(),
        devices,
        sync_layers,
        workers);
  };
  if (inputs.size() > 1) {
    keep_gradients(replicas.tensors().base, apply);
    if (statistics) {
      statistics->finish(rows_of(inputs, dim), *counts);
    }
  } else {
    apply();
  }
  const bool has_scalars =
      gather(call, inputs.size(), devices, output_device, dim, *counts);
  if (has_scalars && !has_warned_of_scalars) {
    has_warned_of_scalars = true;
    TORCH_WARN(
        "DataParallel: 0-dim outputs of the replicas are gathered as a vector "
        "with one entry per replica; reduce it, for example by mean()");
  }
  return inputs.size();
}

DataParallelEngine::DataParallelEngine(
    const std::shared_ptr<torch::nn::Module>& module,
    const DataParallelOptions& options)
    : state_(std::make_unique<State>(module, options)) {}

DataParallelEngine::~DataParallelEngine() = default;

void DataParallelEngine::run(
    ForwardCall& call,
    std::optional<int64_t> no_sync_stretch) {
  const OneCallGuard guard(state_->is_running);
  state_->memory.begin();
  bool has_gathered = state_->output_device != devices().front();
  if (state_->has_one_device()) {
    state_->run_alone(call);
  } else {
    has_gathered =
        state_->run_replicas(call, no_sync_stretch) > 1 || has_gathered;
  }
  call.release_chunks();
  state_->memory.end(call, has_gathered);
  ++state_->forwards;
}

void DataParallelEngine::refresh() {
  const OneCallGuard guard(state_->is_running);
  state_->replicas.refresh();
}

void DataParallelEngine::check_stays_on_device(at::Device device) const {
  if (with_index(device) != devices().front()) {
    throw ConfigError(fmt::format(
        "DataParallel: to: expected {}, the first of the wrapper's devices, "
        "got {}. Move the module before it is wrapped, or wrap it again",
        devices().front().str(),
        device.str()));
  }
}

std::string DataParallelEngine::describe() const {
  const auto& base = *replicas().front();
  const auto contents = fmt::format(
      "{}, {}",
      summarize(unique_parameters(base), "parameter"),
      summarize(unique_buffers(base), "buffer"));
  if (state_->has_one_device()) {
    return fmt::format(
        "DataParallel on {}: {}. The module is called itself: no replicas, no "
        "copies.",
        devices().front().str(),
        contents);
  }
  return fmt::format(
      "DataParallel with {} replicas on {}, outputs on {}: {}. Gradients in {} "
      "bucket(s) of {} bytes or one parameter, summed on {} in replica order. "
      "Replicas are refreshed {} ({}).{}",
      devices().size(),
      join_names(devices()),
      state_->output_device.str(),
      contents,
      state_->bridge.num_buckets(),
      state_->bucket_cap_bytes,
      devices().front().str(),
      refresh_text(state_->refresh_policy),
      buffer_text(state_->buffer_policy),
      devices().front().is_cpu()
          ? " CPU replicas run forward in parallel; the autograd engine runs "
            "their backward on one thread."
          : "");
}

Counters DataParallelEngine::counters() const {
  Counters counters;
  counters.forwards = state_->forwards;
  counters.copies = state_->counts->copies;
  counters.bytes_moved = state_->counts->bytes;
  return counters;
}

MemoryReport DataParallelEngine::memory_report(
    const torch::optim::Optimizer* optimizer) const {
  return measure_memory(
      replicas(),
      devices(),
      state_->output_device,
      state_->memory,
      optimizer);
}

const std::vector<at::Device>& DataParallelEngine::devices() const {
  return state_->devices;
}

int64_t DataParallelEngine::dim() const {
  return state_->dim;
}

const std::vector<std::shared_ptr<torch::nn::Module>>& DataParallelEngine::
    replicas() const {
  return state_->replicas.modules();
}

} // namespace tandem::detail
