#include "replica_set.h"

#include <fmt/format.h>

#include "base_checks.h"
#include "make_replicas.h"

namespace tandem::detail {

ReplicaSet::ReplicaSet(
    const ModulePtr& base,
    std::vector<at::Device> devices,
    const DataParallelOptions& options,
    const std::shared_ptr<TransferCounts>& counts)
    : devices_(std::move(devices)) {
  tensors_.base = list_base_tensors(*base);
  check_base_tensors(tensors_.base, devices_.front());
  modules_ = make_replicas(base, devices_, options.replica_factory());
  for (size_t index = 1; index < modules_.size(); ++index) {
    tensors_.replicas.push_back(match_tensors(
        *base,
        tensors_.base,
        *modules_[index],
        fmt::format("[dp replica {} on {}]", index, devices_[index].str())));
  }
  if (modules_.size() > 1) {
    match_modules();
    copy_training_flags();
    upkeep_.emplace(Upkeep{
        RegistrationCheck(
            base,
            "DataParallel",
            "Replicas do not follow such a change"),
        ReplicaStorage(tensors_, devices_, counts),
        RefreshControl(options, counts)});
  }
}

void ReplicaSet::before_forward(std::optional<int64_t> no_sync_stretch) {
  if (upkeep_) {
    check_base();
    copy_training_flags();
    upkeep_->control.before_forward(upkeep_->storage, no_sync_stretch);
  }
}

void ReplicaSet::refresh() {
  if (upkeep_) {
    check_base();
    copy_training_flags();
    upkeep_->control.force(upkeep_->storage);
  }
}

void ReplicaSet::check_base() const {
  check_base_tensors(tensors_.base, devices_.front());
  upkeep_->registrations.check();
}

void ReplicaSet::match_modules() {
  const auto& base = modules_.front();
  counterparts_.push_back({base, {modules_.begin() + 1, modules_.end()}});
  const auto named_base = base->named_modules("", /*include_self=*/false);
  for (const auto& item : named_base) {
    counterparts_.push_back({item.value(), {}});
  }
  for (size_t index = 1; index < modules_.size(); ++index) {
    const auto named = modules_[index]->named_modules("", false);
    auto entry = counterparts_.begin() + 1;
    for (const auto& item : named_base) {
      (entry++)->replicas.push_back(named[item.key()]);
    }
  }
}

void ReplicaSet::copy_training_flags() {
  for (const auto& entry : counterparts_) {
    const bool is_training = entry.base->is_training();
    for (const auto& replica : entry.replicas) {
      if (replica->is_training() != is_training) {
        replica->train(is_training);
      }
    }
  }
}

} // namespace tandem::detail
