#include "operators/operator_cases.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>

namespace tandem::bench {

std::vector<OperatorCase> operator_cases() {
  using at::Tensor;
  return {
      {"add", [](Tensor& a, const Tensor& b) { return a.add(b); }},
      {"add_", [](Tensor& a, const Tensor& b) { return a.add_(b); }},
      {"mul", [](Tensor& a, const Tensor& b) { return a.mul(b); }},
      {"relu", [](Tensor& a, const Tensor&) { return at::relu(a); }},
      {"sum", [](Tensor& a, const Tensor&) { return a.sum(1); }},
      {"mm", [](Tensor& a, const Tensor& b) { return at::mm(a, b); }},
      {"copy_", [](Tensor& a, const Tensor& b) { return a.copy_(b); }},
      {"cat",
       [](Tensor& a, const Tensor& b) {
         return at::cat({a, b});
       }},
      {"view", [](Tensor& a, const Tensor&) { return a.view({-1}); }}};
}

} // namespace tandem::bench
