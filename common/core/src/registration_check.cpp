#include <tandem/core/detail/registration_check.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::detail {

namespace {

using torch::nn::Module;
using NamedTensors = torch::OrderedDict<std::string, at::Tensor>;
using Parts = std::vector<RegisteredPart>;

/// A module's own parameters where they are. `named_parameters()` would copy
/// them and their names, at every forward.
struct ParameterAccess : Module {
  static const NamedTensors& of(const Module& module) {
    return module.*(&ParameterAccess::parameters_);
  }
};

const void* address_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl();
}

const void* address_of(const std::shared_ptr<Module>& module) {
  return module.get();
}

const void* address_of(const NamedTensors::Item& item) {
  return address_of(item.value());
}

template <typename Named>
Parts parts_of(const Named& named) {
  Parts parts;
  for (const auto& item : named) {
    parts.push_back({item.key(), address_of(item.value())});
  }
  return parts;
}

/// `values`: a vector, or a dictionary's items.
template <typename Values>
bool are_same(const Parts& parts, const Values& values) {
  return std::equal(
      parts.begin(),
      parts.end(),
      values.begin(),
      values.end(),
      [](const RegisteredPart& part, const auto& value) {
        return part.address == address_of(value);
      });
}

const RegisteredPart* find(const Parts& parts, const std::string& name) {
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const RegisteredPart& part) {
        return part.name == name;
      });
  return found == parts.end() ? nullptr : &*found;
}

} // namespace

RegistrationCheck::RegistrationCheck(
    const std::shared_ptr<Module>& root,
    std::string subject,
    std::string consequence)
    : subject_(std::move(subject)), consequence_(std::move(consequence)) {
  add("", root);
  for (const auto& item : root->named_modules("", /*include_self=*/false)) {
    add(item.key(), item.value());
  }
}

void RegistrationCheck::add(
    const std::string& name,
    const std::shared_ptr<Module>& module) {
  entries_.push_back(
      {name,
       module,
       parts_of(ParameterAccess::of(*module)),
       parts_of(module->named_buffers(/*recurse=*/false)),
       parts_of(module->named_children())});
}

void RegistrationCheck::check() const {
  for (const auto& [name, module, parameters, buffers, children] : entries_) {
    const auto& parameters_now = ParameterAccess::of(*module);
    if (!are_same(parameters, parameters_now)) {
      check_parts("parameter", name, parameters, parts_of(parameters_now));
    }
    if (!are_same(buffers, module->buffers(/*recurse=*/false))) {
      check_parts(
          "buffer",
          name,
          buffers,
          parts_of(module->named_buffers(false)));
    }
    if (!are_same(children, module->children())) {
      check_parts("module", name, children, parts_of(module->named_children()));
    }
  }
}

void RegistrationCheck::refuse(
    const std::string& kind,
    const std::string& name,
    const std::string& expected,
    const std::string& actual) const {
  throw ConfigError(fmt::format(
      "{}: {} '{}': expected {}, as when the module was wrapped, got {}. {}: "
      "wrap the module again",
      subject_,
      kind,
      name,
      expected,
      actual,
      consequence_));
}

/// Names the first part of `module` that differs; their order may.
void RegistrationCheck::check_parts(
    const std::string& kind,
    const std::string& module,
    const Parts& expected,
    const Parts& actual) const {
  const auto prefix = module.empty() ? "" : module + ".";
  for (const auto& part : expected) {
    const auto* found = find(actual, part.name);
    if (found == nullptr) {
      refuse(kind, prefix + part.name, "one", "none");
    }
    if (found->address != part.address) {
      refuse(kind, prefix + part.name, "the same one", "another");
    }
  }
  for (const auto& part : actual) {
    if (find(expected, part.name) == nullptr) {
      refuse(kind, prefix + part.name, "none", "one");
    }
  }
}

} // namespace tandem::detail
