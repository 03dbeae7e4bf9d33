#include "replica_set.h"

#include <fmt/format.h>

#include "base_checks.h"
#include "make_replicas.h"

namespace tandem::detail {

ReplicaSet::ReplicaSet(
    const ModulePtr& base,
    std::vector<at::Device> devices,
    const ReplicaFactory& factory,
    std::shared_ptr<TransferCounts> counts)
    : devices_(std::move(devices)) {
  tensors_.base = list_base_tensors(*base);
  check_base_tensors(tensors_.base, devices_.front());
  modules_ = make_replicas(base, devices_, factory);
  for (size_t index = 1; index < modules_.size(); ++index) {
    tensors_.replicas.push_back(match_tensors(
        *base,
        tensors_.base,
        *modules_[index],
        fmt::format("[dp replica {} on {}]", index, devices_[index].str())));
  }
  if (modules_.size() > 1) {
    pair_modules();
    copy_training_flags();
    storage_.emplace(tensors_, devices_, std::move(counts));
  }
}

void ReplicaSet::refresh(bool with_parameters) {
  if (storage_) {
    check_base_tensors(tensors_.base, devices_.front());
    copy_training_flags();
    storage_->refresh(with_parameters);
  }
}

void ReplicaSet::pair_modules() {
  for (size_t index = 1; index < modules_.size(); ++index) {
    pairs_.emplace_back(modules_.front(), modules_[index]);
    const auto replicated = modules_[index]->named_modules("", false);
    for (const auto& item : modules_.front()->named_modules("", false)) {
      pairs_.emplace_back(item.value(), replicated[item.key()]);
    }
  }
}

void ReplicaSet::copy_training_flags() {
  for (const auto& [base, replica] : pairs_) {
    if (replica->is_training() != base->is_training()) {
      replica->train(base->is_training());
    }
  }
}

} // namespace tandem::detail
