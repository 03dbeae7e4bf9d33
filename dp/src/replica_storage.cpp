#include "replica_storage.h"

#include <utility>

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/variable.h>

#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

// Note [Versions of replicas]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Writing to the flat storage leaves the version counters of the replicas'
// tensors alone, since these are views that autograd does not know. Otherwise
// two forwards before one backward would be an error though nothing changed.
// What did change must be an error, as it is without the wrapper: so a
// replica's version moves whenever the base's has moved. Some writes move no
// version (those of torch::optim::SGD, for one), and are no error unwrapped
// either.

namespace {

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
  refresh({});
}

void ReplicaStorage::refresh(Transfers transfers) {
  const at::NoGradGuard no_grad;
  if (!fits_base()) {
    build();
    transfers = {};
  }
  if (transfers.parameters) {
    copy(parameters_);
  }
  if (transfers.buffers) {
    copy(buffers_);
  }
}

void ReplicaStorage::copy(const std::vector<FlatGroup>& groups) {
  for (const auto& group : groups) {
    group.copy_values(*counts_);
    mirror_versions(group);
  }
}

bool ReplicaStorage::have_parameters_moved() const {
  for (const auto& group : parameters_) {
    for (const size_t index : group.tensors()) {
      if (!marks_[index].fits(table_.base[index].tensor)) {
        return true;
      }
    }
  }
  return false;
}

int64_t ReplicaStorage::fingerprint_parameters() const {
  Fingerprint fingerprint;
  for (const auto& group : parameters_) {
    group.add_to(fingerprint);
  }
  return fingerprint.finish();
}

void ReplicaStorage::build() {
  // The storage outlives an inference mode that may be on now.
  const c10::InferenceMode normal_mode(false);
  const at::NoGradGuard no_grad;
  parameters_.clear();
  buffers_.clear();
  const auto base = tensors_of(table_.base);
  marks_ = std::vector<TensorMark>(base.begin(), base.end());
  for (const auto& same_type : group_by_type(base)) {
    std::vector<size_t> parameters;
    std::vector<size_t> buffers;
    for (const size_t index : same_type) {
      (table_.base[index].is_buffer ? buffers : parameters).push_back(index);
    }
    if (!parameters.empty()) {
      parameters_.emplace_back(table_, devices_, std::move(parameters));
    }
    if (!buffers.empty()) {
      buffers_.emplace_back(table_, devices_, std::move(buffers));
    }
  }
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

void ReplicaStorage::mirror_versions(const FlatGroup& group) {
  std::vector<char> has_moved(table_.base.size(), false);
  for (const size_t index : group.tensors()) {
    const auto& base = table_.base[index].tensor;
    has_moved[index] = !marks_[index].has_version_of(base);
    if (!marks_[index].fits(base)) {
      marks_[index] = TensorMark(base);
    }
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
