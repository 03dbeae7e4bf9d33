#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/data/example.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/core/counters.h>
#include <tandem/core/named_tensors.h>

#include "harness/bench_recipe.h"
#include "harness/learner.h"
#include "harness/mode.h"
#include "placement/placement.h"
#include "workloads/classifier.h"

namespace tandem::bench {

/// What one worker does in a step of its mode.
class TimedActivity {
 public:
  virtual ~TimedActivity() = default;

  /// Does it once. `step` chooses among the prepared batches.
  /// **Collective** over the worker's ranks.
  virtual void run(int64_t step) = 0;
  /// What the last `run` has made, to be compared with the bare network's.
  virtual std::vector<NamedTensor> outcome() = 0;
  /// The network on the first device.
  virtual ClassifierImpl& net() = 0;
  virtual Counters counters() const = 0;
  virtual std::optional<CommunicationTimes> communication() const = 0;
  virtual std::optional<comm::HookTraffic> hook_traffic() const = 0;
};

/// Rows of this process in a batch of `rows`.
struct RowRange {
  int64_t begin = 0;
  int64_t count = 0;
};
RowRange own_rows(const WorkerScope& worker, int64_t rows);

/// Makes the worker of a mode, with batches of `recipe` in `dtype`.
/// **Collective** over the worker's ranks.
std::unique_ptr<TimedActivity> make_timed_activity(
    const WorkerScope& worker,
    const Mode& mode,
    const BenchRecipe& recipe,
    at::ScalarType dtype);

/// Whole batches that `make_timed_activity` cuts its rows from.
std::vector<torch::data::Example<>> make_whole_batches(
    const BenchRecipe& recipe,
    at::ScalarType dtype);

/// All of them have as many prepared batches.
inline constexpr int64_t kNumBatches = 4;

} // namespace tandem::bench
