#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "reducer.h"

namespace tandem::detail {

// Note [Unused parameters]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// A parameter that gets no gradient in a backward must add something to its
// bucket all the same, or the other ranks would wait for it. It adds the
// gradient that it has, which accumulated before, or zeros. Which parameters
// those are is certain when backward is through (`store_rest`). Some are known
// when it begins (`store_known_unused`), so that their buckets need not wait:
// those that were frozen at forward, that no path leads to from its outputs, or
// that the first step of a static graph did not use. A search tells nothing
// while several forwards wait for their backward, since one may run with
// another.
//
// Averaging what is equal on all ranks changes nothing, so that a parameter may
// be unused in one backward and used in the next one of the same forward.
//
// Where no rank used it, a parameter's gradient stays as it was, or undefined:
// an optimizer must not decay it. One byte per parameter tells that (`use_`).
// Gradients that lie in the bucket are kept aside meanwhile.
//
// While a parameter is frozen its gradient is left alone; if that lies in the
// bucket it moves out.

void Reducer::store_known_unused() {
  const bool is_only = is_only_forward();
  if (options_.skip_all_reduce_unused_params()) {
    skip_unreached_buckets();
  }
  const bool is_searched = is_only && !forward_->is_unreached.empty();
  const bool is_learned = firings_ && !firings_->is_learning();
  for (size_t index = 0; index < is_ready_.size(); ++index) {
    if (is_ready_[index]) {
      continue;
    }
    if ((is_searched && forward_->is_unreached[index]) ||
        (is_learned && firings_->expected(index) == 0) ||
        (is_only && is_frozen(index))) {
      store_unused(index);
    }
  }
}

/// **Collective**: buckets are skipped on all ranks or on none.
void Reducer::skip_unreached_buckets() {
  GradientUse reached(group_, is_ready_.size());
  const bool is_searched = is_only_forward() && !forward_->is_unreached.empty();
  for (size_t index = 0; index < is_ready_.size(); ++index) {
    const bool is_unreached = is_searched && forward_->is_unreached[index];
    if ((!is_unreached && !forward_->is_frozen[index]) ||
        use_->is_marked_here(index)) {
      reached.mark(index);
    }
  }
  reached.start();
  reached.finish();
  ++counters_.collectives;
  counters_.bytes_moved += static_cast<int64_t>(is_ready_.size());
  const auto& buckets = queue_.buckets();
  for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const auto& members = buckets[bucket].parameters;
    if (std::none_of(members.begin(), members.end(), [&](size_t index) {
          return reached.is_marked(index);
        })) {
      queue_.skip(bucket);
    }
  }
}

/// Backward is through: what got no gradient gets none.
void Reducer::store_rest() {
  const bool is_learning = firings_ && firings_->is_learning();
  for (size_t index = 0; index < is_ready_.size(); ++index) {
    if (is_ready_[index]) {
      continue;
    }
    if (is_learning && firings_->seen(index) > 0) {
      store(index);
    } else if (
        is_frozen(index) || is_learning ||
        (options_.find_unused_parameters() && !firings_)) {
      store_unused(index);
    }
  }
}

void Reducer::store_unused(size_t index) {
  unused_.push_back(index);
  is_left_out_[index] = is_frozen(index);
  if (tensors_.roles[index] != GradientRole::kSparse) {
    auto& grad = tensors_.trained[index].tensor.mutable_grad();
    const auto& view = view_of(index);
    streams_.join_current(view.device());
    if (is_same_view(grad, view)) {
      auto copy = grad.clone();
      if (is_left_out_[index]) {
        grad = std::move(copy);
      } else if (!use_ || !use_->is_marked_here(index)) {
        kept_[index] = std::move(copy);
      }
    }
    store_gradient(
        view,
        is_left_out_[index] ? at::Tensor() : grad,
        scale().before);
  }
  set_ready(index);
}

bool Reducer::prepare_shadow() {
  const std::lock_guard<std::mutex> lock(mutex_);
  recover();
  start_reduction();
  return std::any_of(
      tensors_.trained.begin(),
      tensors_.trained.end(),
      [](const auto& named) { return named.tensor.requires_grad(); });
}

void Reducer::shadow() {
  const at::NoGradGuard no_grad;
  const std::lock_guard<std::mutex> lock(mutex_);
  forward_ = std::make_shared<SyncedForward>();
  // As if all were frozen.
  forward_->is_frozen.assign(is_ready_.size(), true);
  try {
    if (options_.skip_all_reduce_unused_params()) {
      skip_unreached_buckets();
    }
    store_rest();
    finish_reduction(/*is_whole=*/true);
  } catch (...) {
    restart();
    throw;
  }
  forget_marks(/*is_whole=*/true);
  queue_.restart();
}

/// Whether the parameter required no grad at forward, or requires none now.
bool Reducer::is_frozen(size_t index) const {
  return forward_->is_frozen[index] ||
      !tensors_.trained[index].tensor.requires_grad();
}

/// Whether no other forward waits for its backward.
bool Reducer::is_only_forward() const {
  return std::none_of(
      forwards_.begin(),
      forwards_.end(),
      [this](const auto& weak) {
        const auto other = weak.lock();
        return other && other != forward_ && !other->is_reduced;
      });
}

/// Whether the ranks have to tell each other what they used.
bool Reducer::needs_answers() const {
  return use_ && (!firings_ || firings_->is_learning());
}

} // namespace tandem::detail
