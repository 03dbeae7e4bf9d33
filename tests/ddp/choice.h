// A module of which each call uses a part.
#pragma once

#include <cstddef>
#include <cstdint>

#include <torch/torch.h>

#include "support.h"

namespace tandem::test {

/// Uses of its three layers those whose bits are set.
struct ChoiceImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input, int64_t bits) {
    at::Tensor output = input * 0;
    for (size_t i = 0; i < layers->size(); ++i) {
      if ((bits >> i & 1) != 0) {
        output = output + layers[i]->as<Scale>()->forward(input);
      }
    }
    return output;
  }
  at::Tensor grad(size_t index) {
    return layers[index]->as<Scale>()->weight.grad();
  }
  torch::nn::ModuleList layers = register_module(
      "layers",
      torch::nn::ModuleList(
          Scale(at::kDouble),
          Scale(at::kDouble),
          Scale(at::kDouble)));
};
TORCH_MODULE(Choice);

inline at::Tensor number(double value) {
  return torch::full({1}, value, at::kDouble);
}

} // namespace tandem::test
