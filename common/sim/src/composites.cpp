#include "kernels.h"

#include <ATen/ATen.h>

#include <tandem/core/errors.h>

#include "cpu_composite.h"

namespace tandem::sim {

namespace {

// LibTorch would take native_dropout for an accelerator, which scales in
// another order than the CPU does.
at::Tensor dropout(const at::Tensor& input, double p, bool train) {
  if (p < 0 || p > 1) {
    throw ConfigError(
        "dropout: expected a probability from 0 to 1, got " + c10::str(p));
  }
  if (p == 0 || !train || input.numel() == 0) {
    return input;
  }
  if (p == 1) {
    return input.mul(at::zeros({}, input.options()));
  }
  return input * at::empty_like(input).bernoulli_(1 - p).div_(1 - p);
}

// `Module::to` and `set_data` ask; LibTorch's own list of dense backends lacks
// this one.
bool has_compatible_shallow_copy_type(
    const at::Tensor& self,
    const at::Tensor& from) {
  const auto known = [](const at::Tensor& tensor) {
    return tensor.is_cpu() || tensor.is_privateuseone();
  };
  return known(self) && known(from) && self.layout() == from.layout();
}

std::set<std::string> register_both(torch::Library& library) {
  library.impl("dropout", &dropout);
  library.impl(
      "_has_compatible_shallow_copy_type",
      &has_compatible_shallow_copy_type);
  return {"dropout", "_has_compatible_shallow_copy_type"};
}

} // namespace

std::set<std::string> register_dense_composites(torch::Library& dense) {
  auto names = register_both(dense);
  names.merge(register_cpu_composites(dense));
  return names;
}

void register_autograd_composites(torch::Library& autograd) {
  register_both(autograd);
  register_cpu_composites_autograd(autograd);
}

} // namespace tandem::sim
