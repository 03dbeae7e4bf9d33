#include "tensors.h"

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

namespace tandem::test {

namespace {

bool same_kind(const at::Tensor& actual, const at::Tensor& expected) {
  return actual.defined() && expected.defined() &&
      actual.scalar_type() == expected.scalar_type() &&
      actual.sizes() == expected.sizes();
}

} // namespace

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed, at::ScalarType dtype) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kDouble).to(dtype);
}

void fill(torch::nn::Module& module, uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : module.parameters()) {
    parameter.copy_(normal(parameter.sizes(), seed++).mul(0.3));
  }
}

std::vector<at::Tensor> grads_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> grads;
  for (const auto& parameter : module.parameters()) {
    grads.push_back(parameter.grad());
  }
  return grads;
}

std::vector<at::Tensor> snapshot(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    copies.push_back(tensor.defined() ? tensor.detach().clone() : tensor);
  }
  return copies;
}

bool is_equal(const at::Tensor& actual, const at::Tensor& expected) {
  return same_kind(actual, expected) && actual.cpu().equal(expected.cpu());
}

bool is_close(
    const at::Tensor& actual,
    const at::Tensor& expected,
    double tolerance) {
  if (!actual.defined() || !expected.defined()) {
    return actual.defined() == expected.defined();
  }
  return same_kind(actual, expected) &&
      actual.cpu().allclose(expected.cpu(), tolerance, tolerance);
}

bool are_close(
    const std::vector<at::Tensor>& actual,
    const std::vector<at::Tensor>& expected,
    double tolerance) {
  return std::equal(
      actual.begin(),
      actual.end(),
      expected.begin(),
      expected.end(),
      [&](const at::Tensor& left, const at::Tensor& right) {
        return is_close(left, right, tolerance);
      });
}

} // namespace tandem::test
