#include "gradient_bridge.h"

#include <algorithm>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/variable.h>

#include <tandem/core/bucket_plan.h>
#include <tandem/core/detail/torch_compat.h>

#include "gradient_nodes.h"

namespace tandem::detail {

// Note [Gradient bridge]
// ~~~~~~~~~~~~~~~~~~~~~~
//   replica 1: tensors -> Move node ─┐
//   replica 2: tensors -> Move node ─┼-> Sum node -> accumulators of the base
//   replica 3: tensors -> Move node ─┘
//
// One such tree per bucket. The replicas' tensors are made results of their
// Move node, so that every forward of a replica joins one ordinary graph with
// that of the base: backward(), autograd::grad, accumulation, retain_graph and
// double backward need nothing more. The nodes hold no state and serve all
// graphs at once. Without the Sum node, the engine would add the replicas in
// the order in which they arrive.
//
// An edge is replaced only if it must be, and taken away only if the base
// tensor was frozen: a tensor that a graph has saved is the same object and
// asks for its edge when backward unpacks it.
//
// The engine calls the hooks of all parameters of a bucket when the bucket
// arrives, also of those that received no gradient. So parameters with hooks
// get buckets of their own.

namespace impl = torch::autograd::impl;

namespace {

bool has_hooks(const at::Tensor& tensor, torch::autograd::Node& target) {
  return !impl::hooks(tensor).empty() ||
      impl::post_acc_grad_hooks(tensor) != nullptr ||
      !target.post_hooks().empty();
}

} // namespace

GradientBridge::GradientBridge(
    const TensorTable& table,
    std::vector<at::Device> devices,
    int64_t bucket_cap_bytes,
    std::shared_ptr<const DeviceSum> sum)
    : table_(table),
      devices_(std::move(devices)),
      bucket_cap_bytes_(bucket_cap_bytes),
      sum_(std::move(sum)) {
  for (const auto& replica : table.replicas) {
    auto& stand_ins = stand_ins_.emplace_back(table.base.size());
    for (const auto& entry : replica) {
      stand_ins[entry.base].push_back(entry.tensor);
    }
  }
}

void GradientBridge::update() {
  auto streams = current_streams();
  if (is_current(streams)) {
    return;
  }
  streams_ = std::move(streams);
  targets_.clear();
  for (const auto& base : table_.base) {
    targets_.push_back(target_of(base.tensor));
  }
  detach_frozen();
  const auto buckets = plan();
  for (const auto& bucket : buckets) {
    build_bucket(bucket);
  }
  num_buckets_ = buckets.size();
}

GradientBridge::Target GradientBridge::target_of(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) {
    return {};
  }
  Target target;
  target.edge = impl::gradient_edge(tensor);
  target.has_hooks = has_hooks(tensor, *target.edge.function);
  return target;
}

bool GradientBridge::is_target_of(
    const Target& target,
    const at::Tensor& tensor) {
  if (!target.edge.is_valid() || !tensor.requires_grad()) {
    return target.edge.is_valid() == tensor.requires_grad();
  }
  // Asking a leaf for its edge would lock it: too dear for every forward.
  const bool is_leaf = impl::grad_fn_unsafe(tensor) == nullptr;
  const bool leads_there = is_leaf
      ? impl::try_get_grad_accumulator(tensor) == target.edge.function
      : impl::gradient_edge(tensor) == target.edge;
  return leads_there &&
      has_hooks(tensor, *target.edge.function) == target.has_hooks;
}

bool GradientBridge::is_current(const std::vector<c10::Stream>& streams) const {
  if (targets_.size() != table_.base.size() || streams != streams_) {
    return false;
  }
  for (size_t index = 0; index < targets_.size(); ++index) {
    if (!is_target_of(targets_[index], table_.base[index].tensor)) {
      return false;
    }
  }
  return true;
}

std::vector<c10::Stream> GradientBridge::current_streams() const {
  std::vector<c10::Stream> streams;
  for (const auto& device : devices_) {
    if (!device.is_cpu()) {
      streams.push_back(
          c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    }
  }
  return streams;
}

std::vector<std::vector<size_t>> GradientBridge::plan() const {
  std::vector<size_t> indices;
  std::vector<BucketItem> items;
  std::vector<std::vector<size_t>> buckets;
  // Backward reaches the last layers first.
  for (size_t index = table_.base.size(); index-- > 0;) {
    const auto& tensor = table_.base[index].tensor;
    if (!targets_[index].edge.is_valid()) {
      continue;
    }
    if (targets_[index].has_hooks) {
      buckets.push_back({index});
      continue;
    }
    indices.push_back(index);
    items.push_back(
        {static_cast<int64_t>(tensor.nbytes()),
         static_cast<int64_t>(tensor.scalar_type())});
  }
  for (auto& bucket : plan_buckets(items, {bucket_cap_bytes_})) {
    for (auto& item : bucket) {
      item = indices[item];
    }
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

void GradientBridge::build_bucket(const std::vector<size_t>& bucket) {
  torch::autograd::edge_list accumulators;
  for (const size_t index : bucket) {
    accumulators.push_back(targets_[index].edge);
  }
  // A node must know its own successors before others lead to it.
  const auto sum = make_node<SumNode>(sum_, bucket.size());
  sum->set_next_edges(std::move(accumulators));
  for (const auto& stand_ins : stand_ins_) {
    torch::autograd::edge_list to_sum;
    std::vector<at::Tensor> tensors;
    for (size_t output = 0; output < bucket.size(); ++output) {
      for (const auto& tensor : stand_ins[bucket[output]]) {
        to_sum.push_back(
            sum->add_input(table_.base[bucket[output]].tensor, output));
        tensors.push_back(tensor);
      }
    }
    const auto move = make_node<MoveNode>(
        sum_,
        streams_.empty() ? std::nullopt : std::make_optional(streams_.front()));
    move->set_next_edges(std::move(to_sum));
    for (const auto& tensor : tensors) {
      const auto input = move->add_input_metadata(tensor);
      impl::set_gradient_edge(tensor, {move, input});
    }
  }
}

void GradientBridge::detach_frozen() {
  for (const auto& replica : table_.replicas) {
    for (const auto& entry : replica) {
      if (!targets_[entry.base].edge.is_valid() &&
          entry.tensor.requires_grad()) {
        impl::set_gradient_edge(entry.tensor, {});
        entry.tensor.set_requires_grad(false);
      }
    }
  }
}

} // namespace tandem::detail
