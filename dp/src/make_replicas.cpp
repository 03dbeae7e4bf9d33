#include "make_replicas.h"

#include <string>

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "keep_generators.h"
#include "replica_tree_check.h"

namespace tandem::detail {

namespace {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

bool can_clone(const torch::nn::Module& module) {
  try {
    return module.clone() != nullptr;
  } catch (const std::exception&) {
    return false;
  }
}

/// The first module whose clone fails though those of its children do not.
std::string find_uncloneable(
    const std::string& name,
    const torch::nn::Module& module) {
  for (const auto& child : module.named_children()) {
    if (!can_clone(*child.value())) {
      return find_uncloneable(
          name.empty() ? child.key() : name + "." + child.key(),
          *child.value());
    }
  }
  return module_label(name, module);
}

ModulePtr clone_to(const torch::nn::Module& base, at::Device device) {
  std::string reason;
  try {
    return base.clone(device);
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  throw ConfigError(fmt::format(
      "DataParallel: {}: expected a module that clone(device) can copy, got: "
      "{} Derive it from torch::nn::Cloneable and register everything in "
      "reset(), or pass DataParallelOptions().replica_factory(...)",
      find_uncloneable("", base),
      reason));
}

std::vector<ModulePtr> make_all(
    const ModulePtr& base,
    const std::vector<at::Device>& devices,
    const ReplicaFactory& factory) {
  // Tensors made in inference mode could not be trained later.
  const c10::InferenceMode normal_mode(false);
  std::vector<ModulePtr> modules = {base};
  ReplicaTreeCheck tree_check(*base);
  for (size_t index = 1; index < devices.size(); ++index) {
    const auto& device = devices[index];
    const auto subject =
        fmt::format("[dp replica {} on {}]", index, device.str());
    auto replica = factory ? factory(device) : clone_to(*base, device);
    if (!replica) {
      throw ConfigError(fmt::format(
          "{} replica_factory: expected a module, got null",
          subject));
    }
    tree_check.check(*replica, subject);
    replica->to(device);
    modules.push_back(std::move(replica));
  }
  return modules;
}

} // namespace

std::vector<ModulePtr> make_replicas(
    const ModulePtr& base,
    const std::vector<at::Device>& devices,
    const ReplicaFactory& factory) {
  std::vector<ModulePtr> modules;
  if (devices.size() == 1) {
    modules = {base};
  } else {
    keep_generators(devices, [&] {
      modules = make_all(base, devices, factory);
    });
  }
  return modules;
}

} // namespace tandem::detail
