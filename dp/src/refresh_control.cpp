#include "refresh_control.h"

#include <utility>

#include <c10/core/GradMode.h>

namespace tandem::detail {

// Note [Never a stale weight]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Three things tell that parameters may have changed since they were copied: a
// backward through the wrapper, which an optimizer's step follows; a version
// counter that moved, or another place in memory; their bytes. The first two
// cost next to nothing and see most changes, but not a write through .data(),
// variable_data() or a pointer without a backward (averaged weights swapped in
// for an evaluation, say). So kChecked compares fingerprints where they see
// nothing.
//
// Taking a fingerprint reads all parameters once, on the first device. It is of
// use only if it will be compared, so a training step, whose copy is followed
// by a backward, takes none: it is taken with a copy that no backward can
// follow (grad mode is off), and where none has followed the last copy. An
// evaluation under NoGradGuard so sends parameters at its first forward only,
// and one with grad mode on at its first two.

RefreshControl::RefreshControl(
    const DataParallelOptions& options,
    std::shared_ptr<const TransferCounts> counts)
    : policy_(options.refresh_policy()),
      sends_buffers_(options.buffer_policy() != BufferPolicy::kNone),
      counts_(std::move(counts)) {}

void RefreshControl::before_forward(
    ReplicaStorage& storage,
    std::optional<int64_t> no_sync_stretch) {
  if (is_copy_broken_) {
    force(storage);
  } else {
    auto transfers = choose(storage, no_sync_stretch);
    transfers.buffers = transfers.buffers && sends_buffers_;
    copy(storage, transfers);
  }
}

void RefreshControl::force(ReplicaStorage& storage) {
  may_have_changed(storage, /*is_certain=*/true);
  copy(storage, {});
}

void RefreshControl::copy(ReplicaStorage& storage, Transfers transfers) {
  is_copy_broken_ = true;
  storage.refresh(transfers);
  is_copy_broken_ = false;
}

Transfers RefreshControl::choose(
    const ReplicaStorage& storage,
    std::optional<int64_t> no_sync_stretch) {
  switch (policy_) {
    case RefreshPolicy::kAlways:
      return {};
    case RefreshPolicy::kManual:
      return {.parameters = false};
    case RefreshPolicy::kVersions:
    case RefreshPolicy::kChecked:
      break;
  }
  if (is_accumulating(no_sync_stretch)) {
    return {.parameters = false, .buffers = false};
  }
  return {.parameters = may_have_changed(storage, /*is_certain=*/false)};
}

bool RefreshControl::is_accumulating(std::optional<int64_t> no_sync_stretch) {
  const auto last = std::exchange(no_sync_stretch_, no_sync_stretch);
  return no_sync_stretch && no_sync_stretch == last;
}

bool RefreshControl::may_have_changed(
    const ReplicaStorage& storage,
    bool is_certain) {
  const int64_t last =
      std::exchange(gradient_buckets_, counts_->gradient_buckets.load());
  const bool is_seen = is_certain || gradient_buckets_ != last ||
      storage.have_parameters_moved();
  if (policy_ != RefreshPolicy::kChecked) {
    return is_seen;
  }
  if (is_seen && at::GradMode::is_enabled()) {
    fingerprint_.reset();
    return true;
  }
  const auto last_fingerprint =
      std::exchange(fingerprint_, storage.fingerprint_parameters());
  return is_seen || fingerprint_ != last_fingerprint;
}

} // namespace tandem::detail
