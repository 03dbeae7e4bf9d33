#include "replica_set.h"

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "base_checks.h"
#include "make_replicas.h"
#include "replica_tree_check.h"

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
    match_modules();
    copy_training_flags();
    storage_.emplace(tensors_, devices_, std::move(counts));
  }
}

void ReplicaSet::refresh(bool with_parameters) {
  if (storage_) {
    check_base_tensors(tensors_.base, devices_.front());
    check_same_children();
    copy_training_flags();
    storage_->refresh(with_parameters);
  }
}

void ReplicaSet::match_modules() {
  const auto& base = modules_.front();
  counterparts_.push_back(
      {"", base, base->children(), {modules_.begin() + 1, modules_.end()}});
  for (const auto& item : base->named_modules("", /*include_self=*/false)) {
    counterparts_.push_back(
        {item.key(), item.value(), item.value()->children(), {}});
  }
  for (size_t index = 1; index < modules_.size(); ++index) {
    const auto named = modules_[index]->named_modules("", false);
    for (auto entry = counterparts_.begin() + 1; entry != counterparts_.end();
         ++entry) {
      entry->replicas.push_back(named[entry->name]);
    }
  }
}

void ReplicaSet::check_same_children() const {
  for (const auto& entry : counterparts_) {
    if (entry.base->children() != entry.children) {
      throw ConfigError(fmt::format(
          "DataParallel: {}: expected the children it had when it was wrapped, "
          "got others. Replicas do not follow such a change: wrap the module "
          "again",
          module_label(entry.name, *entry.base)));
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
