#include "replica_storage.h"

#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

// Note [Refresh]
// ~~~~~~~~~~~~~~
// A refresh concatenates a group's base tensors once and copies the result into
// the flat storage of each replica: two large operations instead of two small
// ones per tensor. (On the base's own device it concatenates straight into the
// storage.) Tensors lie in memory order, so a weight that is channels_last in
// the base is so in the replica.
//
// Writing to the flat storage leaves the version counters of the replicas'
// tensors alone, since these are views that autograd does not know. Otherwise
// two forwards before one backward would be an error though nothing changed.
// What did change must be an error, as it is without the wrapper: so a
// replica's version moves whenever the base's has moved. Some writes move no
// version (those of torch::optim::SGD, for one), and are no error unwrapped
// either; this is also why everything is copied instead of what has changed.

namespace {

/// A vector instruction's and a cache line's worth for every dtype.
constexpr int64_t kAlignElems = 64;

/// The elements in the order in which they lie in the replicas.
at::Tensor in_memory_order(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) {
    return tensor.as_strided({tensor.numel()}, {1});
  }
  return tensor.reshape({-1});
}

int64_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor._version();
}

std::vector<at::Tensor> tensors_of(const std::vector<BaseTensor>& base) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(base.size());
  for (const auto& entry : base) {
    tensors.push_back(entry.tensor);
  }
  return tensors;
}

} // namespace

ReplicaStorage::ReplicaStorage(
    const TensorTable& table,
    std::vector<at::Device> devices,
    std::shared_ptr<TransferCounts> counts)
    : table_(table), devices_(std::move(devices)), counts_(std::move(counts)) {
  build();
  refresh(/*with_parameters=*/true);
}

void ReplicaStorage::refresh(bool with_parameters) {
  const at::NoGradGuard no_grad;
  const bool rebuild = !fits_base();
  if (rebuild) {
    build();
  }
  for (const auto& group : groups_) {
    if (with_parameters || rebuild || group.are_buffers) {
      copy_values(group);
      mirror_versions(group);
    }
  }
}

void ReplicaStorage::build() {
  // The storage outlives an inference mode that may be on now.
  const c10::InferenceMode normal_mode(false);
  const at::NoGradGuard no_grad;
  groups_.clear();
  versions_.assign(table_.base.size(), 0);
  for (const auto& same_type : group_by_type(tensors_of(table_.base))) {
    std::vector<size_t> parameters;
    std::vector<size_t> buffers;
    for (const size_t index : same_type) {
      const bool is_buffer = table_.base[index].is_buffer;
      (is_buffer ? buffers : parameters).push_back(index);
      versions_[index] = version_of(table_.base[index].tensor);
    }
    for (auto* tensors : {&parameters, &buffers}) {
      if (!tensors->empty()) {
        groups_.push_back(build_group(std::move(*tensors)));
      }
    }
  }
}

ReplicaStorage::Group ReplicaStorage::build_group(std::vector<size_t> tensors) {
  std::vector<int64_t> numels;
  numels.reserve(tensors.size());
  for (const size_t index : tensors) {
    numels.push_back(table_.base[index].tensor.numel());
  }
  const auto layout = make_flat_layout(numels, kAlignElems);
  std::vector<int64_t> offset_of(table_.base.size(), -1);
  Group group;
  for (size_t i = 0; i < tensors.size(); ++i) {
    offset_of[tensors[i]] = layout.offsets_elems[i];
    const int64_t end = i + 1 < tensors.size() ? layout.offsets_elems[i + 1]
                                               : layout.total_elems;
    group.padding_elems.push_back(end - layout.offsets_elems[i] - numels[i]);
  }
  const auto& first = table_.base[tensors.front()];
  for (size_t replica = 0; replica < table_.replicas.size(); ++replica) {
    auto flat = at::zeros(
        {layout.total_elems},
        at::TensorOptions(devices_[replica + 1])
            .dtype(first.tensor.scalar_type()));
    for (const auto& entry : table_.replicas[replica]) {
      if (offset_of[entry.base] >= 0) {
        entry.tensor.set_data(view_into_flat(
            flat,
            offset_of[entry.base],
            table_.base[entry.base].tensor));
      }
    }
    group.flats.push_back(std::move(flat));
  }
  group.are_buffers = first.is_buffer;
  group.tensors = std::move(tensors);
  return group;
}

bool ReplicaStorage::fits_base() const {
  for (const auto& entry : table_.replicas.front()) {
    const auto& base = table_.base[entry.base].tensor;
    if (base.scalar_type() != entry.tensor.scalar_type() ||
        base.sizes() != entry.tensor.sizes() ||
        (base.is_non_overlapping_and_dense() &&
         base.strides() != entry.tensor.strides())) {
      return false;
    }
  }
  return true;
}

void ReplicaStorage::copy_values(const Group& group) {
  // Thousands of views that autograd need not know cost less.
  const at::AutoDispatchBelowADInplaceOrView no_view_tracking;
  const auto& base_options =
      table_.base[group.tensors.front()].tensor.options();
  const auto padding = at::zeros({kAlignElems}, base_options);
  std::vector<at::Tensor> parts;
  parts.reserve(2 * group.tensors.size());
  for (size_t i = 0; i < group.tensors.size(); ++i) {
    parts.push_back(in_memory_order(table_.base[group.tensors[i]].tensor));
    if (group.padding_elems[i] > 0) {
      parts.push_back(padding.narrow(0, 0, group.padding_elems[i]));
    }
  }
  at::Tensor joined;
  for (auto flat : group.flats) {
    if (joined.defined()) {
      flat.copy_(joined, /*non_blocking=*/true);
    } else if (flat.device() == base_options.device()) {
      joined = at::cat_out(flat, parts);
    } else {
      joined = at::cat(parts);
      flat.copy_(joined, /*non_blocking=*/true);
    }
    counts_->add(flat);
  }
}

void ReplicaStorage::mirror_versions(const Group& group) {
  std::vector<bool> has_moved(table_.base.size(), false);
  for (const size_t index : group.tensors) {
    const int64_t version = version_of(table_.base[index].tensor);
    has_moved[index] = version != versions_[index];
    versions_[index] = version;
  }
  for (const auto& replica : table_.replicas) {
    for (const auto& entry : replica) {
      if (has_moved[entry.base] && !entry.tensor.is_inference()) {
        torch::autograd::impl::bump_version(entry.tensor);
      }
    }
  }
}

} // namespace tandem::detail
