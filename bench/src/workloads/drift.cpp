#include "workloads/drift.h"

#include <ATen/ops/zeros.h>

namespace tandem::bench {

namespace {

constexpr double kDriftPerCall = 0.125;

} // namespace

DriftImpl::DriftImpl() {
  reset();
}

void DriftImpl::reset() {
  drift_ = register_buffer("drift", at::zeros({}));
}

at::Tensor DriftImpl::forward(const at::Tensor& input) {
  auto output = input * (1 + drift_);
  if (is_training()) {
    drift_.add_(kDriftPerCall);
  }
  return output;
}

} // namespace tandem::bench
