#include "reducer.h"

#include <algorithm>
#include <utility>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <tandem/core/errors.h>

#include "module_checks.h"
#include "output_hooks.h"
#include "rank_text.h"
#include "reduction_messages.h"
#include "unused_search.h"

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
//
// After the first reduction the buckets are made anew in the order in which rank
// 0's gradients came, so that later ones fill in the order of their launch.

namespace {

constexpr int kNoTask = -1;

int current_task() {
  return torch::autograd::get_current_graph_task_id();
}

/// Whether backward runs for all leaves, not for chosen inputs only.
bool runs_for_all_leaves() {
  const auto* chosen = torch::autograd::get_current_graph_task_exec_info();
  return chosen == nullptr || chosen->empty();
}

void require_layout(
    bool is_sparse,
    const at::Tensor& grad,
    const std::string& name,
    const comm::ProcessGroup& group) {
  const auto expected = is_sparse ? at::kSparse : at::kStrided;
  if (grad.defined() && grad.layout() != expected) {
    throw ConfigError(fmt::format(
        "{} gradient of parameter '{}': expected a {} tensor, got {}. {}",
        rank_tag(group),
        name,
        is_sparse ? "sparse" : "dense",
        c10::str(grad.layout()),
        is_sparse ? "Leave it out of sparse_params, or make its layer's "
                    "gradients sparse"
                  : "Name it in the option sparse_params, or make its layer's "
                    "gradients dense"));
  }
}

} // namespace

Reducer::Reducer(
    std::shared_ptr<comm::ProcessGroup> group,
    const ModuleTensors& tensors,
    const DistributedDataParallelOptions& options)
    : group_(std::move(group)),
      tensors_(tensors),
      options_(options),
      queue_(group_, tensors, options, log_),
      slots_(gradient_slots(queue_.buckets(), tensors.trained.size())),
      order_(queue_.order()),
      is_ready_(tensors.trained.size()),
      is_left_out_(tensors.trained.size()),
      armed_task_(kNoTask),
      hooks_(tensors.trained, [this](size_t index, bool is_defined) {
        on_gradient(index, is_defined);
      }) {
  if (options.find_unused_parameters() || options.static_graph()) {
    use_ = std::make_unique<GradientUse>(group_, tensors.trained.size());
  }
  if (options.static_graph()) {
    firings_ = std::make_unique<FiringCounts>(tensors.trained.size());
  }
}

bool Reducer::prepare_forward(bool gradient_sync) {
  const std::lock_guard<std::mutex> lock(mutex_);
  follow_parameters();
  if (broken_ || !finish_tasks_.empty()) {
    recover();
  } else if (num_ready_ > 0) {
    const auto message = message_for_missing_parameters();
    restart();
    throw ConfigError(message);
  }
  if (!gradient_sync) {
    return false;
  }
  start_reduction();
  auto forward = std::make_shared<SyncedForward>();
  for (const auto& parameter : tensors_.trained) {
    forward->is_frozen.push_back(!parameter.tensor.requires_grad());
  }
  if (std::count(forward->is_frozen.begin(), forward->is_frozen.end(), false) ==
      0) {
    return false;
  }
  forward_ = std::move(forward);
  std::erase_if(forwards_, [](const auto& weak) { return weak.expired(); });
  forwards_.push_back(forward_);
  armed_ = true;
  log_.forward_began();
  return true;
}

/// What every rank does before its part in a reduction.
void Reducer::start_reduction() {
  if (const auto order = order_.take(*group_)) {
    rebuild(*order);
  }
}

void Reducer::weigh(std::shared_ptr<GradientWeight> weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  forward_->weight = std::move(weight);
}

void Reducer::watch(const std::vector<at::Tensor>& outputs) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (options_.find_unused_parameters() && !firings_) {
    forward_->is_unreached =
        find_unreached(outputs, hooks_.accumulators(), is_ready_.size());
  }
  log_.forward_ended();
  call_before_backward_of(
      outputs,
      [weak = weak_from_this(), forward = forward_] {
        if (const auto self = weak.lock()) {
          self->rearm(forward);
        }
      });
}

void Reducer::rearm(const std::shared_ptr<SyncedForward>& forward) {
  const at::NoGradGuard no_grad;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (broken_) {
    recover();
  }
  const int task = current_task();
  const auto before = std::exchange(forward_, forward);
  if (task == armed_task_ && before && before != forward) {
    const auto scale_before = scale_of(*before);
    if (scale_before != scale()) {
      broken_ = true;
      throw ConfigError(fmt::format(
          "{} sample weight: expected one share of the ranks' weights in each "
          "backward, got forwards with 1/{:g} and 1/{:g}. Call backward for "
          "one after the other",
          rank_tag(*group_),
          scale_before.before,
          scale().before));
    }
  }
  armed_task_ = task;
  forward->is_reduced = true;
  armed_ = true;
  if (use_ && runs_for_all_leaves()) {
    // Even a backward that brings no gradient is to be reduced.
    try {
      begin_backward();
    } catch (...) {
      broken_ = true;
      throw;
    }
  }
}

void Reducer::on_gradient(size_t index, bool is_defined) {
  const at::NoGradGuard no_grad;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (use_ && is_defined) {
    use_->mark(index);
  }
  // The accumulator of a parameter that was frozen since forward does nothing.
  if (!armed_ || broken_ || !tensors_.trained[index].tensor.requires_grad()) {
    return;
  }
  try {
    begin_backward();
    log_.gradient_came();
    if (is_last_gradient(index)) {
      store(index);
    }
  } catch (...) {
    broken_ = true;
    throw;
  }
}

/// Whether this is the gradient to reduce, as it is unless the graph is static;
/// counts it in that case.
bool Reducer::is_last_gradient(size_t index) {
  if (!firings_) {
    return true;
  }
  firings_->arrived(index);
  if (firings_->is_learning()) {
    return false;
  }
  const auto expected = firings_->expected(index);
  if (firings_->seen(index) > expected) {
    throw ConfigError(
        message_for_changed_graph(*group_, tensors_.trained[index], expected));
  }
  return firings_->seen(index) == expected;
}

void Reducer::begin_backward() {
  const int task = current_task();
  if (std::count(finish_tasks_.begin(), finish_tasks_.end(), task) != 0) {
    return;
  }
  torch::autograd::Engine::get_default_engine().queue_callback(
      [weak = weak_from_this(), task] {
        if (const auto self = weak.lock()) {
          self->finish(task);
        }
      });
  finish_tasks_.push_back(task);
  if (armed_task_ == kNoTask) {
    armed_task_ = task;
  }
  log_.backward_began();
  if (task == armed_task_) {
    store_known_unused();
  }
}

void Reducer::store(size_t index) {
  const auto& [name, parameter] = tensors_.trained[index];
  if (is_ready_[index]) {
    throw ConfigError(message_for_second_gradient(
        *group_,
        tensors_.trained[index],
        options_.find_unused_parameters()));
  }
  auto& grad = parameter.mutable_grad();
  const bool is_sparse = tensors_.roles[index] == GradientRole::kSparse;
  require_layout(is_sparse, grad, name, *group_);
  if (!is_sparse) {
    streams_.join_current(parameter.device());
    const auto& view = view_of(index);
    store_gradient(view, grad, scale().before);
    if (is_view(index) && grad.defined() && !is_same_view(grad, view)) {
      grad = view;
    }
  }
  if (tensors_.roles[index] == GradientRole::kBucket) {
    order_.arrived(index);
  }
  set_ready(index);
}

void Reducer::set_ready(size_t index) {
  is_ready_[index] = true;
  ++num_ready_;
  if (slots_[index].bucket != GradientSlot::kNoBucket) {
    queue_.gradient_stored(slots_[index].bucket);
  }
}

void Reducer::finish(int task) {
  const at::NoGradGuard no_grad;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(finish_tasks_, task);
  if (broken_) {
    return;
  }
  log_.compute_ended();
  try {
    if (task == armed_task_) {
      store_rest();
    }
    const bool is_whole = num_ready_ == is_ready_.size();
    finish_reduction(is_whole);
    log_.backward_ended();
    if (is_whole) {
      log_.reduction_ended(queue_.buckets().size());
      last_unused_ = std::exchange(unused_, {});
      forget_marks(/*is_whole=*/true);
      queue_.restart();
    }
  } catch (...) {
    restart();
    throw;
  }
}

void Reducer::recover() {
  forget_marks(/*is_whole=*/false);
  queue_.abandon();
}

void Reducer::restart() {
  forget_marks(/*is_whole=*/false);
  queue_.restart();
}

void Reducer::forget_marks(bool is_whole) {
  armed_ = false;
  broken_ = false;
  armed_task_ = kNoTask;
  finish_tasks_.clear();
  std::fill(is_ready_.begin(), is_ready_.end(), false);
  std::fill(is_left_out_.begin(), is_left_out_.end(), false);
  num_ready_ = 0;
  kept_.clear();
  unused_.clear();
  streams_.restart();
  order_.reduction_ended(is_whole);
  if (use_) {
    use_->restart();
  }
  if (firings_) {
    firings_->reduction_ended(is_whole);
  }
  if (!is_whole) {
    log_.restart();
  }
}

void Reducer::follow_parameters() {
  for (size_t i = 0; i < tensors_.trained.size(); ++i) {
    check_unchanged(tensors_.trained[i], tensors_.wrapped_as[i], *group_);
    hooks_.reattach(i, tensors_.trained[i].tensor);
  }
  for (const auto& parameter : tensors_.frozen) {
    check_still_frozen(parameter, *group_);
  }
}

} // namespace tandem::detail
