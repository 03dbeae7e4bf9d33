#include <tandem/core/batch_rows.h>

namespace tandem {

std::optional<int64_t> batch_rows(
    const std::vector<at::Tensor>& tensors,
    int64_t batch_dim) {
  for (const auto& tensor : tensors) {
    if (tensor.defined() && tensor.dim() > batch_dim) {
      return tensor.size(batch_dim);
    }
  }
  return std::nullopt;
}

} // namespace tandem
