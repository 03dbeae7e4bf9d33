#pragma once

#include <string>
#include <unordered_map>

#include <torch/nn/module.h>

namespace tandem::detail {

/// "module 'encoder' of type NetImpl"; the root has no name.
std::string module_label(
    const std::string& name,
    const torch::nn::Module& module);

/// Refuses replicas that are not separate copies of the base's module tree.
class ReplicaTreeCheck {
 public:
  /// `base` outlives this.
  explicit ReplicaTreeCheck(const torch::nn::Module& base);

  /// `subject` names the replica in messages.
  /// **Throws** `ConfigError` if names or types of modules differ, or a module
  /// or tensor belongs to the base or to a replica checked before.
  void check(const torch::nn::Module& replica, const std::string& subject);

 private:
  void check_type(
      const std::string& name,
      const torch::nn::Module& base,
      const torch::nn::Module& replica,
      const std::string& subject) const;
  void check_separate(
      const torch::nn::Module& replica,
      const std::string& subject) const;
  void refuse_owned(
      const void* part,
      const std::string& label,
      const std::string& subject) const;
  void note(const torch::nn::Module& module, const std::string& owner);

  const torch::nn::Module& base_;
  /// Modules and tensors seen so far, and whose they are.
  std::unordered_map<const void*, std::string> owners_;
};

} // namespace tandem::detail
