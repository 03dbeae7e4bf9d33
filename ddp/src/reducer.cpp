#include "reducer.h"

#include <algorithm>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <tandem/core/errors.h>

#include "module_checks.h"
#include "output_hooks.h"
#include "rank_text.h"

namespace tandem::detail {

// Note [Reduction]
// ~~~~~~~~~~~~~~~~
// A forward with synchronisation on arms the reducer; so does, in backward, the
// first node behind its output (`watch`), because one forward may be reduced
// several times and several forwards may be made before the first backward.
// While armed, each gradient that arrives is divided by the world size (or, where
// ranks are weighed, by the weights' sum over this rank's) and stored in its
// bucket. Buckets are launched in index order as they fill. At
// the end of the backward call `finish` waits for those launched and hands
// their gradients over. Buckets that are not full yet stay as they are: another
// backward of the same forward may fill them (two losses over two towers). The
// reduction is over, and the reducer disarmed, when all are handed over. If the
// next forward comes first, parameters have been missed: that is an error.
//
// The division comes before the sum, so that half precision does not overflow,
// and is the same operation whether the gradient has to be copied or lies in
// the bucket already, so that both give the same bits.
//
// A backward that throws leaves a reduction that nobody finishes: its callback
// is queued but never runs. `recover` waits for what it had launched, since the
// buckets' memory is still being written, and starts afresh.

namespace {

constexpr int kNoTask = -1;
constexpr size_t kNamesInMessage = 20;
constexpr size_t kSizesInDescription = 8;

void require_dense(
    const at::Tensor& grad,
    const std::string& name,
    const comm::ProcessGroup& group) {
  if (grad.defined() && grad.layout() != at::kStrided) {
    throw ConfigError(fmt::format(
        "{} gradient of parameter '{}': expected a dense tensor, got {}. Make "
        "the layer's gradient dense, for an embedding with sparse(false)",
        rank_tag(group),
        name,
        c10::str(grad.layout())));
  }
}

} // namespace

Reducer::Reducer(
    std::shared_ptr<comm::ProcessGroup> group,
    const ModuleTensors& tensors,
    const DistributedDataParallelOptions& options)
    : group_(std::move(group)),
      tensors_(tensors),
      gradient_as_view_(options.gradient_as_bucket_view()),
      queue_(group_, tensors.trained, options),
      slots_(gradient_slots(queue_.buckets(), tensors.trained.size())),
      is_ready_(tensors.trained.size()),
      hooks_(tensors.trained, [this](size_t index) { on_gradient(index); }) {}

void Reducer::prepare_forward(bool gradient_sync) {
  const std::lock_guard<std::mutex> lock(mutex_);
  follow_parameters();
  if (broken_ || finish_task_ != kNoTask) {
    recover();
  } else if (num_ready_ > 0) {
    const auto message = message_for_missing();
    restart();
    throw ConfigError(message);
  }
  armed_ = armed_ || gradient_sync;
}

void Reducer::weigh(std::shared_ptr<GradientWeight> weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  weight_ = std::move(weight);
}

void Reducer::watch(const std::vector<at::Tensor>& outputs) {
  call_before_backward_of(outputs, [weak = weak_from_this(), weight = weight_] {
    if (const auto self = weak.lock()) {
      self->rearm(weight);
    }
  });
}

void Reducer::rearm(const std::shared_ptr<GradientWeight>& weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (broken_) {
    recover();
  }
  const int task = torch::autograd::get_current_graph_task_id();
  if (task == armed_task_ && weight != weight_ &&
      divisor_of(weight) != divisor_of(weight_)) {
    broken_ = true;
    throw ConfigError(fmt::format(
        "{} sample weight: expected one share of the ranks' weights in each "
        "backward, got forwards with 1/{:g} and 1/{:g}. Call backward for one "
        "after the other",
        rank_tag(*group_),
        divisor_of(weight_),
        divisor_of(weight)));
  }
  armed_task_ = task;
  weight_ = weight;
  armed_ = true;
}

/// What gradients are divided by before the sum over the ranks.
double Reducer::divisor_of(
    const std::shared_ptr<GradientWeight>& weight) const {
  return weight ? weight->divisor() : static_cast<double>(group_->size());
}

void Reducer::on_gradient(size_t index) {
  const at::NoGradGuard no_grad;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!armed_ || broken_) {
    return;
  }
  try {
    queue_finish();
    store(index);
  } catch (...) {
    broken_ = true;
    throw;
  }
}

void Reducer::store(size_t index) {
  const auto& [name, parameter] = tensors_.trained[index];
  if (is_ready_[index]) {
    throw ConfigError(fmt::format(
        "{} parameter '{}': expected one gradient per synchronised step, got a "
        "second one while other parameters have none yet. Use the parameter in "
        "one backward per forward, or run all but the last under no_sync()",
        rank_tag(*group_),
        name));
  }
  auto& grad = parameter.mutable_grad();
  require_dense(grad, name, *group_);
  streams_.join_current(parameter.device());
  const auto [bucket, position] = slots_[index];
  const auto& view = queue_.buckets()[bucket].views[position];
  store_gradient(view, grad, divisor_of(weight_));
  if (gradient_as_view_ && !is_same_view(grad, view)) {
    grad = view;
  }
  is_ready_[index] = true;
  ++num_ready_;
  queue_.gradient_stored(bucket);
}

void Reducer::queue_finish() {
  const int task = torch::autograd::get_current_graph_task_id();
  if (finish_task_ == task) {
    return;
  }
  torch::autograd::Engine::get_default_engine().queue_callback(
      [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
          self->finish();
        }
      });
  finish_task_ = task;
}

void Reducer::finish() {
  const at::NoGradGuard no_grad;
  const std::lock_guard<std::mutex> lock(mutex_);
  finish_task_ = kNoTask;
  if (broken_) {
    return;
  }
  try {
    queue_.finish_launched([this](const Bucket& bucket) { hand_over(bucket); });
  } catch (...) {
    restart();
    throw;
  }
  if (queue_.is_finished()) {
    restart();
  }
}

void Reducer::hand_over(const Bucket& bucket) {
  if (gradient_as_view_) {
    return;
  }
  for (size_t i = 0; i < bucket.parameters.size(); ++i) {
    auto& grad = tensors_.trained[bucket.parameters[i]].tensor.mutable_grad();
    if (grad.defined()) {
      grad.copy_(bucket.views[i]);
    } else {
      grad = bucket.views[i].clone();
    }
  }
}

void Reducer::recover() {
  forget_marks();
  queue_.abandon();
}

void Reducer::restart() {
  forget_marks();
  queue_.restart();
}

void Reducer::forget_marks() {
  armed_ = false;
  broken_ = false;
  finish_task_ = kNoTask;
  std::fill(is_ready_.begin(), is_ready_.end(), false);
  num_ready_ = 0;
  streams_.restart();
}

void Reducer::follow_parameters() {
  for (size_t i = 0; i < tensors_.trained.size(); ++i) {
    const auto [bucket, position] = slots_[i];
    check_unchanged(
        tensors_.trained[i],
        queue_.buckets()[bucket].views[position],
        *group_);
    hooks_.reattach(i, tensors_.trained[i].tensor);
  }
  for (const auto& parameter : tensors_.frozen) {
    check_still_frozen(parameter, *group_);
  }
}

std::string Reducer::message_for_missing() const {
  std::vector<size_t> missing;
  for (size_t i = 0; i < is_ready_.size(); ++i) {
    if (!is_ready_[i]) {
      missing.push_back(i);
    }
  }
  return fmt::format(
      "{} parameters {} ({} of {}): expected a gradient on this rank in the "
      "last synchronised step, got none. Use every parameter in each loss, or "
      "freeze those that are not trained, requires_grad_(false), before the "
      "module is wrapped",
      rank_tag(*group_),
      quoted_names(tensors_.trained, missing, kNamesInMessage),
      missing.size(),
      is_ready_.size());
}

std::string Reducer::describe() const {
  const auto& buckets = queue_.buckets();
  std::string sizes;
  for (size_t i = 0; i < std::min(buckets.size(), kSizesInDescription); ++i) {
    sizes += fmt::format("{}{}", i == 0 ? "" : ", ", buckets[i].flat.nbytes());
  }
  return fmt::format(
      "Gradients are averaged in {} bucket{} of {}{} bytes; they are {} the "
      "buckets.",
      buckets.size(),
      buckets.size() == 1 ? "" : "s",
      sizes,
      buckets.size() > kSizesInDescription ? ", ..." : "",
      gradient_as_view_ ? "views into" : "copied from");
}

Counters Reducer::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.counters();
}

} // namespace tandem::detail
