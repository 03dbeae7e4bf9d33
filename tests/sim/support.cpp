#include "support.h"

#include <cstring>

#include <tandem/sim/sim.h>

#include "tandem_catch.h"
#include "tensors.h"

namespace tandem::sim_test {

namespace {

constexpr int kSteps = 3;

bool same_bytes(const at::Tensor& left, const at::Tensor& right) {
  const auto a = left.contiguous().resolve_conj().resolve_neg();
  const auto b = right.contiguous().resolve_conj().resolve_neg();
  return a.nbytes() == b.nbytes() &&
      (a.nbytes() == 0 ||
       std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

/// A sum whose gradient differs from element to element.
at::Tensor weighted_sum(const at::Tensor& output) {
  const auto weights = torch::arange(output.numel(), torch::kDouble)
                           .mul(0.37)
                           .cos()
                           .reshape(output.sizes())
                           .to(output.options());
  return (output * weights).sum();
}

Tensors inputs_on(const Tensors& inputs, at::Device device) {
  Tensors moved;
  for (const auto& input : inputs) {
    auto copy = input.to(device, input.scalar_type(), false, /*copy=*/true);
    copy.set_requires_grad(copy.is_floating_point() || copy.is_complex());
    moved.push_back(copy);
  }
  return moved;
}

void append_gradients(Tensors& results, const Tensors& tensors) {
  for (const auto& tensor : tensors) {
    results.push_back(tensor.detach().cpu().clone());
    if (tensor.grad().defined()) {
      results.push_back(tensor.grad().cpu().clone());
    }
  }
}

} // namespace

void start_devices(int64_t count) {
  at::set_num_threads(1);
  sim::init({.devices = count});
}

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return test::normal(sizes, seed, at::kFloat);
}

at::Tensor integers(int64_t limit, at::IntArrayRef sizes, uint64_t seed) {
  return torch::randint(
      0,
      limit,
      sizes,
      at::make_generator<at::CPUGeneratorImpl>(seed),
      torch::kLong);
}

bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() != right.scalar_type() ||
      left.layout() != right.layout() || left.sizes() != right.sizes()) {
    return false;
  }
  const auto a = left.cpu();
  const auto b = right.cpu();
  if (a.is_sparse()) {
    return a.is_coalesced() == b.is_coalesced() &&
        same_bytes(a._indices(), b._indices()) &&
        same_bytes(a._values(), b._values());
  }
  return same_bytes(a, b);
}

void check_same_bits(const Tensors& actual, const Tensors& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    INFO(
        "tensor " << i << " of " << actual.size() << ", " << actual[i].sizes());
    CHECK(same_bits(actual[i], expected[i]));
  }
}

MakeOptimizer sgd_with_momentum() {
  return [](const Tensors& parameters) {
    return std::make_unique<torch::optim::SGD>(
        parameters,
        torch::optim::SGDOptions(0.01).momentum(0.9));
  };
}

Tensors three_steps(
    const Recipe& recipe,
    at::Device device,
    const MakeOptimizer& make_optimizer) {
  torch::manual_seed(7);
  const auto module = recipe.make();
  module->to(device);
  torch::manual_seed(11);
  const auto inputs = inputs_on(recipe.data, device);
  const auto parameters = module->parameters();
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (!parameters.empty()) {
    optimizer = make_optimizer(parameters);
  }
  Tensors results;
  for (int step = 0; step < kSteps; ++step) {
    const auto closure = [&] {
      if (optimizer) {
        optimizer->zero_grad();
      }
      const auto loss = weighted_sum(recipe.forward(*module, inputs));
      if (loss.requires_grad()) {
        loss.backward();
      }
      return loss.detach();
    };
    const auto loss = optimizer ? optimizer->step(closure) : closure();
    results.push_back(loss.cpu());
  }
  append_gradients(results, inputs);
  append_gradients(results, parameters);
  append_gradients(results, module->buffers());
  return results;
}

void check_trains_as_on_cpu(
    const Recipe& recipe,
    const MakeOptimizer& make_optimizer) {
  INFO(recipe.name);
  check_same_bits(
      three_steps(recipe, sim::device(0), make_optimizer),
      three_steps(recipe, at::kCPU, make_optimizer));
}

} // namespace tandem::sim_test
