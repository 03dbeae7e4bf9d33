#include <tandem/core/loss_rows.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::detail {

at::Tensor sum_of_losses(const at::Tensor& losses, int64_t batch_dim) {
  return losses.sum().reshape(std::vector<int64_t>(batch_dim + 1, 1));
}

int64_t count_rows(const std::vector<at::Tensor>& targets, int64_t batch_dim) {
  for (const auto& target : targets) {
    if (target.defined()) {
      if (target.dim() <= batch_dim) {
        throw ShapeError(fmt::format(
            "mean_loss: target: expected at least {} dimension(s), the batch "
            "dimension being {}, got {}. Pass one target per row",
            batch_dim + 1,
            batch_dim,
            target.dim()));
      }
      return target.size(batch_dim);
    }
  }
  throw ShapeError(
      "mean_loss: target: expected at least one tensor to count the rows by, "
      "got none. Pass the targets as a tensor with one row per sample");
}

} // namespace tandem::detail
