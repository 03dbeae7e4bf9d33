#include "replica_tree_check.h"

#include <typeinfo>

#include <c10/util/Type.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::detail {

namespace {

std::string type_name(const torch::nn::Module& module) {
  return c10::demangle(typeid(module).name());
}

} // namespace

std::string module_label(
    const std::string& name,
    const torch::nn::Module& module) {
  return name.empty()
      ? fmt::format("module of type {}", type_name(module))
      : fmt::format("module '{}' of type {}", name, type_name(module));
}

ReplicaTreeCheck::ReplicaTreeCheck(const torch::nn::Module& base)
    : base_(base) {
  note(base, "the wrapped module");
}

void ReplicaTreeCheck::check(
    const torch::nn::Module& replica,
    const std::string& subject) {
  check_type("", base_, replica, subject);
  const auto modules = replica.named_modules("", /*include_self=*/false);
  for (const auto& item : base_.named_modules("", /*include_self=*/false)) {
    const auto* found = modules.find(item.key());
    if (found == nullptr) {
      throw ConfigError(fmt::format(
          "{} {}: expected as in the wrapped module, got none. Register it in "
          "reset(), or in the module that the replica_factory makes",
          subject,
          module_label(item.key(), *item.value())));
    }
    check_type(item.key(), *item.value(), **found, subject);
  }
  check_separate(replica, subject);
  note(replica, subject);
}

void ReplicaTreeCheck::check_type(
    const std::string& name,
    const torch::nn::Module& base,
    const torch::nn::Module& replica,
    const std::string& subject) const {
  if (typeid(base) != typeid(replica)) {
    throw ConfigError(fmt::format(
        "{} {}: expected the same type in the replica, got {}. Make the "
        "replica_factory give a module of the wrapped module's type",
        subject,
        module_label(name, base),
        type_name(replica)));
  }
}

void ReplicaTreeCheck::check_separate(
    const torch::nn::Module& replica,
    const std::string& subject) const {
  refuse_owned(&replica, module_label("", replica), subject);
  for (const auto& item : replica.named_modules("", /*include_self=*/false)) {
    refuse_owned(
        item.value().get(),
        module_label(item.key(), *item.value()),
        subject);
  }
  for (const auto& item : replica.named_parameters()) {
    refuse_owned(
        item.value().unsafeGetTensorImpl(),
        fmt::format("parameter '{}'", item.key()),
        subject);
  }
  for (const auto& item : replica.named_buffers()) {
    refuse_owned(
        item.value().unsafeGetTensorImpl(),
        fmt::format("buffer '{}'", item.key()),
        subject);
  }
}

void ReplicaTreeCheck::refuse_owned(
    const void* part,
    const std::string& label,
    const std::string& subject) const {
  const auto owner = owners_.find(part);
  if (owner != owners_.end()) {
    throw ConfigError(fmt::format(
        "{} {}: expected one of its own, got that of {}. A replica must be a "
        "deep copy: make new modules and tensors in the replica_factory",
        subject,
        label,
        owner->second));
  }
}

void ReplicaTreeCheck::note(
    const torch::nn::Module& module,
    const std::string& owner) {
  owners_.emplace(&module, owner);
  for (const auto& child : module.modules(/*include_self=*/false)) {
    owners_.emplace(child.get(), owner);
  }
  for (const auto& parameter : module.parameters()) {
    owners_.emplace(parameter.unsafeGetTensorImpl(), owner);
  }
  for (const auto& buffer : module.buffers()) {
    owners_.emplace(buffer.unsafeGetTensorImpl(), owner);
  }
}

} // namespace tandem::detail
