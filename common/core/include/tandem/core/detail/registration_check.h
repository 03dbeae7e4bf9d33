#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace tandem::detail {

/// A parameter, buffer or child of a module. While something owns it, its
/// address is its identity.
struct RegisteredPart {
  std::string name;
  const void* address;
};

/// Remembers what the modules of a tree have registered.
class RegistrationCheck {
 public:
  /// The tensors registered now must outlive this. `subject` and `consequence`
  /// begin and end the message: "DataParallel", "Replicas do not follow such a
  /// change".
  RegistrationCheck(
      const std::shared_ptr<torch::nn::Module>& root,
      std::string subject,
      std::string consequence);

  /// **Throws** `ConfigError` naming the first parameter, buffer or module that
  /// was added, removed or replaced since construction.
  void check() const;

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<torch::nn::Module> module;
    std::vector<RegisteredPart> parameters;
    std::vector<RegisteredPart> buffers;
    std::vector<RegisteredPart> children;
  };

  void add(
      const std::string& name,
      const std::shared_ptr<torch::nn::Module>& module);
  void check_parts(
      const std::string& kind,
      const std::string& module,
      const std::vector<RegisteredPart>& expected,
      const std::vector<RegisteredPart>& actual) const;
  [[noreturn]] void refuse(
      const std::string& kind,
      const std::string& name,
      const std::string& expected,
      const std::string& actual) const;

  std::string subject_;
  std::string consequence_;
  std::vector<Entry> entries_;
};

} // namespace tandem::detail
