#include <cmath>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include "reducer.h"
#include "sparse_reduction.h"

namespace tandem::detail {

void Reducer::finish_reduction(bool is_whole) {
  if (needs_answers()) {
    if (!is_whole) {
      return;
    }
    use_->start();
    use_->finish();
    ++counters_.collectives;
    counters_.bytes_moved += static_cast<int64_t>(is_ready_.size());
  }
  queue_.finish_launched([this](const Bucket& bucket) { hand_over(bucket); });
  if (is_whole) {
    reduce_sparse();
  }
}

void Reducer::hand_over(const Bucket& bucket) {
  const auto after = scale().after;
  if (after != 1) {
    bucket.flat.div_(after);
  }
  for (size_t i = 0; i < bucket.parameters.size(); ++i) {
    const size_t index = bucket.parameters[i];
    if (!is_left_out_[index] && (!use_ || use_->is_marked(index))) {
      hand_over(index, bucket.views[i]);
    } else if (const auto kept = kept_.find(index); kept != kept_.end()) {
      bucket.views[i].copy_(kept->second);
    }
  }
}

void Reducer::hand_over(size_t index, const at::Tensor& view) {
  const auto& parameter = tensors_.trained[index].tensor;
  auto& grad = parameter.mutable_grad();
  if (is_view(index)) {
    if (!is_same_view(grad, view)) {
      grad = view;
    }
  } else {
    if (!grad.defined()) {
      grad = at::empty_like(parameter);
    }
    grad.copy_(view);
  }
  if (on_reduced_) {
    on_reduced_(index);
  }
}

void Reducer::reduce_sparse() {
  // No hook sees them, so the mean is made here.
  const auto [before, after] = gradient_scale(
      options_,
      group_->size(),
      forward_->weight.get(),
      /*has_hook=*/false);
  for (size_t index = 0; index < slots_.size(); ++index) {
    if (tensors_.roles[index] != GradientRole::kSparse) {
      continue;
    }
    const auto& parameter = tensors_.trained[index];
    auto& grad = parameter.tensor.mutable_grad();
    const bool counts = !is_left_out_[index] && std::isfinite(before);
    auto sum = sum_sparse(
        *group_,
        parameter,
        counts && grad.defined() ? grad / before : at::Tensor(),
        counters_);
    if (!is_left_out_[index] && (!use_ || use_->is_marked(index))) {
      grad = after == 1 ? sum : sum / after;
      if (on_reduced_) {
        on_reduced_(index);
      }
    }
  }
}

GradientScale Reducer::scale_of(const SyncedForward& forward) const {
  return gradient_scale(
      options_,
      group_->size(),
      forward.weight.get(),
      queue_.hook() != nullptr);
}

GradientScale Reducer::scale() const {
  return scale_of(*forward_);
}

/// Whether the gradient lies in its bucket.
bool Reducer::is_view(size_t index) const {
  return options_.gradient_as_bucket_view() &&
      queue_.buckets()[slots_[index].bucket].has_own_dtype;
}

const at::Tensor& Reducer::view_of(size_t index) const {
  const auto [bucket, position] = slots_[index];
  return queue_.buckets()[bucket].views[position];
}

void Reducer::rebuild(const std::vector<size_t>& order) {
  const at::NoGradGuard no_grad;
  const auto had_view = [this](size_t index) {
    return slots_[index].bucket != GradientSlot::kNoBucket &&
        is_same_view(tensors_.trained[index].tensor.grad(), view_of(index));
  };
  std::vector<size_t> lent;
  for (size_t index = 0; index < slots_.size(); ++index) {
    if (had_view(index)) {
      lent.push_back(index);
    }
  }
  queue_.plan(order);
  slots_ = gradient_slots(queue_.buckets(), slots_.size());
  for (const size_t index : lent) {
    auto& grad = tensors_.trained[index].tensor.mutable_grad();
    view_of(index).copy_(grad);
    grad = view_of(index);
  }
  has_rebuilt_ = true;
}

} // namespace tandem::detail
