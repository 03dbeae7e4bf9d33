#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// Gives rank `to`, which has no gradients of its own, those that rank `from`
/// has of `parameters`, for one step: ends with the object, which restores what
/// was there. Sparse gradients come dense.
class GradientLoan {
 public:
  /// **Collective**.
  GradientLoan(
      comm::ProcessGroup& group,
      int64_t from,
      int64_t to,
      const std::vector<at::Tensor>& parameters);
  ~GradientLoan();
  GradientLoan(const GradientLoan&) = delete;
  GradientLoan& operator=(const GradientLoan&) = delete;

 private:
  /// Only on rank `to`.
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> previous_;
};

} // namespace tandem::detail
