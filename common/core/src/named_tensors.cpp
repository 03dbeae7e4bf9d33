#include <tandem/core/named_tensors.h>

#include <unordered_set>

#include <fmt/format.h>

namespace tandem {

namespace {

std::vector<NamedTensor> unique_tensors(
    const torch::OrderedDict<std::string, at::Tensor>& named) {
  std::vector<NamedTensor> unique;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : named) {
    if (item.value().defined() &&
        seen.insert(item.value().unsafeGetTensorImpl()).second) {
      unique.push_back({item.key(), item.value()});
    }
  }
  return unique;
}

} // namespace

std::vector<NamedTensor> unique_parameters(const torch::nn::Module& module) {
  return unique_tensors(module.named_parameters());
}

std::vector<NamedTensor> unique_buffers(const torch::nn::Module& module) {
  return unique_tensors(module.named_buffers());
}

int64_t total_bytes(const std::vector<NamedTensor>& tensors) {
  int64_t bytes = 0;
  for (const auto& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.tensor.nbytes());
  }
  return bytes;
}

std::string summarize(
    const std::vector<NamedTensor>& tensors,
    const std::string& noun) {
  return fmt::format(
      "{} {}{} ({} bytes)",
      tensors.size(),
      noun,
      tensors.size() == 1 ? "" : "s",
      total_bytes(tensors));
}

} // namespace tandem
