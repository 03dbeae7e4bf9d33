#include <tandem/sim/sim.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

namespace nn = torch::nn;

using Forward =
    std::function<at::Tensor(nn::Module& module, const at::Tensor& input)>;

at::Tensor gradient_of(const at::Tensor& loss, const at::Tensor& input) {
  return torch::autograd::grad({loss}, {input}, {}, true, true)[0];
}

/// Gradients by input and parameters of the loss plus the square of its own
/// gradient; of the third order too.
Tensors penalised_gradients(
    nn::Module& module,
    const at::Tensor& data,
    const Forward& forward) {
  const auto input = data.detach().clone().requires_grad_();
  const auto loss = forward(module, input).pow(2).sum();
  const auto first = gradient_of(loss, input);
  const auto second = gradient_of(first.pow(2).sum(), input);
  (loss + first.pow(2).sum() + second.pow(3).sum()).backward();
  Tensors results{first.detach(), second.detach(), input.grad()};
  for (const auto& parameter : module.parameters()) {
    results.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  return results;
}

/// CHECKs both devices' results against each other. In double only the order
/// of additions differs: LibTorch numbers the nodes that a backward makes by
/// the thread it runs on, and the engine adds in that order.
template <typename Layer>
void check_as_on_cpu(
    Layer layer,
    const at::Tensor& data,
    const Forward& forward) {
  layer->to(torch::kDouble);
  const auto expected =
      penalised_gradients(*layer, data.to(torch::kDouble), forward);
  layer->to(sim::device(1));
  const auto actual = penalised_gradients(
      *layer,
      data.to(sim::device(1), torch::kDouble),
      forward);
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    INFO("tensor " << i);
    CHECK(actual[i].device() == sim::device(1));
    CHECK(actual[i].cpu().allclose(expected[i], 1e-10, 1e-12));
  }
}

template <typename Layer>
void check_recurrent(Layer layer, const at::Tensor& data) {
  using Impl = typename Layer::ContainedType;
  check_as_on_cpu(
      std::move(layer),
      data,
      [](nn::Module& module, const at::Tensor& input) {
        return std::get<0>(dynamic_cast<Impl&>(module).forward(input));
      });
}

} // namespace

TEST_CASE("a gradient penalty goes through recurrent layers", "[sim]") {
  start_devices();
  const auto data = normal({4, 2, 3}, 2);
  check_recurrent(nn::LSTM(nn::LSTMOptions(3, 4).num_layers(2)), data);
  check_recurrent(nn::GRU(nn::GRUOptions(3, 4).bidirectional(true)), data);
  check_recurrent(nn::RNN(3, 4), data);
  check_recurrent(nn::LSTMCell(3, 4), data[0]);
  check_as_on_cpu(
      nn::GRUCell(3, 4),
      data[0],
      [](nn::Module& module, const at::Tensor& input) {
        return dynamic_cast<nn::GRUCellImpl&>(module).forward(input);
      });
}

TEST_CASE("a gradient penalty goes through attention", "[sim]") {
  start_devices();
  check_as_on_cpu(
      nn::MultiheadAttention(8, 2),
      normal({5, 2, 8}, 3),
      [](nn::Module& module, const at::Tensor& input) {
        return std::get<0>(dynamic_cast<nn::MultiheadAttentionImpl&>(module)
                               .forward(input, input, input));
      });
}

TEST_CASE(
    "attention in one operator has the second derivatives of the CPU: none",
    "[sim]") {
  start_devices(1);
  for (const auto device : {at::Device(at::kCPU), sim::device(0)}) {
    const auto x = normal({1, 2, 3, 4}, 4).to(device).requires_grad_();
    const auto loss = at::scaled_dot_product_attention(x, x, x).sum();
    const auto penalty = gradient_of(loss, x).pow(2).sum();
    CHECK_THROWS_WITH(
        penalty.backward(),
        Catch::Matchers::ContainsSubstring("is not implemented"));
  }
}

TEST_CASE("a backward through a freed recurrent graph is an error", "[sim]") {
  start_devices(1);
  nn::GRU layer(2, 3);
  layer->to(sim::device(0));
  const auto output =
      std::get<0>(layer(torch::ones({2, 1, 2}, sim::device(0)))).sum();
  output.backward({}, /*retain_graph=*/true);
  output.backward();
  CHECK_THROWS_WITH(
      output.backward(),
      Catch::Matchers::ContainsSubstring("a second time"));
}

} // namespace tandem::sim_test
