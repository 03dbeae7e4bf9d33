#include "tensor_table.h"

#include <sstream>
#include <unordered_map>

#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/core/named_tensors.h>

namespace tandem::detail {

namespace {

using NamedTensors = torch::OrderedDict<std::string, at::Tensor>;
using IndexOfImpl = std::unordered_map<const c10::TensorImpl*, size_t>;

constexpr const char* kSameModuleRemedy =
    "Make clone() or the replica_factory give a module of the same "
    "configuration";

std::string shape_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

void check_names(
    const NamedTensors& base,
    const NamedTensors& replica,
    const std::string& kind,
    const std::string& subject) {
  for (const auto& item : base) {
    if (!replica.contains(item.key())) {
      throw ConfigError(fmt::format(
          "{}: {} '{}': expected as in the wrapped module, got none. {}",
          subject,
          kind,
          item.key(),
          kSameModuleRemedy));
    }
  }
  for (const auto& item : replica) {
    if (!base.contains(item.key())) {
      throw ConfigError(fmt::format(
          "{}: {} '{}': expected none, as in the wrapped module, got one. {}",
          subject,
          kind,
          item.key(),
          kSameModuleRemedy));
    }
  }
}

/// Appends the replica's tensors of one kind, each once.
class Matcher {
 public:
  Matcher(const std::vector<BaseTensor>& base, std::string subject)
      : base_(base), subject_(std::move(subject)) {
    for (size_t index = 0; index < base.size(); ++index) {
      base_index_[base[index].tensor.unsafeGetTensorImpl()] = index;
    }
  }

  void match(
      const NamedTensors& base,
      const NamedTensors& replica,
      const std::string& kind) {
    check_names(base, replica, kind, subject_);
    for (const auto& item : base) {
      add(item.key(), item.value(), replica[item.key()], kind);
    }
  }

  std::vector<ReplicaTensor> take() {
    return std::move(matched_);
  }

 private:
  void add(
      const std::string& name,
      const at::Tensor& base,
      const at::Tensor& replica,
      const std::string& kind) {
    if (replica.sizes() != base.sizes()) {
      throw ConfigError(fmt::format(
          "{}: {} '{}': expected shape {} as in the wrapped module, got {}. {}",
          subject_,
          kind,
          name,
          shape_text(base),
          shape_text(replica),
          kSameModuleRemedy));
    }
    const size_t index = base_index_.at(base.unsafeGetTensorImpl());
    const auto [seen, is_new] =
        replica_index_.emplace(replica.unsafeGetTensorImpl(), index);
    if (is_new) {
      matched_.push_back({replica, index});
    } else if (seen->second != index) {
      throw ConfigError(fmt::format(
          "{}: {} '{}': expected a tensor of its own as in the wrapped module, "
          "got that of '{}'. {}",
          subject_,
          kind,
          name,
          base_[seen->second].name,
          kSameModuleRemedy));
    }
  }

  const std::vector<BaseTensor>& base_;
  std::string subject_;
  IndexOfImpl base_index_;
  IndexOfImpl replica_index_;
  std::vector<ReplicaTensor> matched_;
};

} // namespace

std::vector<BaseTensor> list_base_tensors(const torch::nn::Module& module) {
  std::vector<BaseTensor> tensors;
  IndexOfImpl seen;
  for (const auto& [name, tensor] : unique_parameters(module)) {
    seen.emplace(tensor.unsafeGetTensorImpl(), tensors.size());
    tensors.push_back({name, tensor, /*is_buffer=*/false});
  }
  for (const auto& [name, tensor] : unique_buffers(module)) {
    if (!seen.contains(tensor.unsafeGetTensorImpl())) {
      tensors.push_back({name, tensor, /*is_buffer=*/true});
    }
  }
  return tensors;
}

std::vector<ReplicaTensor> match_tensors(
    const torch::nn::Module& base_module,
    const std::vector<BaseTensor>& base,
    const torch::nn::Module& replica,
    const std::string& subject) {
  Matcher matcher(base, subject);
  matcher.match(
      base_module.named_parameters(),
      replica.named_parameters(),
      "parameter");
  matcher.match(base_module.named_buffers(), replica.named_buffers(), "buffer");
  return matcher.take();
}

} // namespace tandem::detail
