#include "keep_gradients.h"

#include <utility>

#include <c10/util/Exception.h>

namespace tandem::detail {

namespace {

struct SavedGradient {
  const BaseTensor& base;
  at::Tensor gradient;
};

/// Of the tensor itself, also if it is no leaf.
const at::Tensor& gradient_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->grad();
}

std::vector<SavedGradient> save_gradients(const std::vector<BaseTensor>& base) {
  std::vector<SavedGradient> saved;
  for (const auto& entry : base) {
    if (gradient_of(entry.tensor).defined()) {
      saved.push_back({entry, gradient_of(entry.tensor)});
    }
  }
  return saved;
}

void restore_gradients(const std::vector<SavedGradient>& saved) {
  const BaseTensor* restored = nullptr;
  for (const auto& [base, gradient] : saved) {
    if (!gradient_of(base.tensor).defined()) {
      base.tensor.mutable_grad() = gradient;
      restored = &base;
    }
  }
  if (restored != nullptr) {
    TORCH_WARN_ONCE(
        "DataParallel: parameter '",
        restored->name,
        "': its gradient vanished during forward and has been put back. "
        "zero_grad() in a wrapped module's forward has no effect; call it "
        "before forward");
  }
}

} // namespace

void keep_gradients(
    const std::vector<BaseTensor>& base,
    const std::function<void()>& body) {
  const auto saved = save_gradients(base);
  try {
    body();
  } catch (...) {
    restore_gradients(saved);
    throw;
  }
  restore_gradients(saved);
}

} // namespace tandem::detail
