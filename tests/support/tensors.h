// What tests make of tensors and check of them, on whatever devices they are.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace tandem::test {

/// Where the order of additions in double is the only difference.
inline constexpr double kDoubleTolerance = 1e-10;

/// Normal numbers on the CPU that depend on the seed alone, on any thread.
at::Tensor normal(
    at::IntArrayRef sizes,
    uint64_t seed,
    at::ScalarType dtype = at::kDouble);

/// Overwrites parameters, each with numbers of its own.
void fill(torch::nn::Module& module, uint64_t seed);

/// Of each parameter; undefined where there is none.
std::vector<at::Tensor> grads_of(const torch::nn::Module& module);

/// Copies of `tensors` that later steps leave alone.
std::vector<at::Tensor> snapshot(const std::vector<at::Tensor>& tensors);

/// Same dtype, shape and values.
bool is_equal(const at::Tensor& actual, const at::Tensor& expected);

/// Same dtype and shape, and close values; or both undefined.
bool is_close(
    const at::Tensor& actual,
    const at::Tensor& expected,
    double tolerance = kDoubleTolerance);
bool are_close(
    const std::vector<at::Tensor>& actual,
    const std::vector<at::Tensor>& expected,
    double tolerance = kDoubleTolerance);

} // namespace tandem::test
