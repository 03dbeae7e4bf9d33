#include <tandem/sim/sim.h>
#include <tandem/sim/statistics.h>

#include <ATen/autocast_mode.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <sstream>

#include <tandem/core/errors.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

using Compute = std::function<at::Tensor(const Tensors&)>;

Tensors moved(const Tensors& tensors, at::Device device) {
  Tensors copies;
  for (const auto& tensor : tensors) {
    copies.push_back(tensor.to(device));
  }
  return copies;
}

/// CHECKs that `compute` gives on sim:1 the CPU's bits, and gives them there.
void check_as_on_cpu(const Tensors& inputs, const Compute& compute) {
  torch::manual_seed(3);
  const auto expected = compute(inputs);
  torch::manual_seed(3);
  const auto actual = compute(moved(inputs, sim::device(1)));
  CHECK(actual.device() == sim::device(1));
  CHECK(same_bits(actual, expected));
  CHECK(actual.strides() == expected.strides());
}

} // namespace

TEST_CASE("views share a device's memory and write through", "[sim]") {
  start_devices();
  const auto tensor = torch::zeros({4, 4}, sim::device(0));
  const auto expected = torch::zeros({4, 4});
  const auto change = [](const at::Tensor& base) {
    base.t().slice(0, 1, 3).add_(1);
    base.view({16})[0] = 5;
    base.unfold(0, 2, 2).select(0, 1).mul_(2);
    base.chunk(2, 1)[1].sub_(3);
    base.diagonal().neg_();
    base.view({2, 8}).expand({2, 2, 8})[0][1].add_(0.5);
    at::split_with_sizes(base, {1, 3})[1].clamp_(-2, 2);
  };
  change(tensor);
  change(expected);
  CHECK(same_bits(tensor, expected));
  CHECK(tensor.select(0, 0).data_ptr() == tensor.data_ptr());
  CHECK(tensor.unfold(0, 2, 2).is_alias_of(tensor));
  const auto complex = torch::view_as_complex(tensor.view({4, 2, 2}));
  complex.mul_(2);
  CHECK(same_bits(tensor, expected * 2));
}

TEST_CASE("out= and resizing give the device's tensor new bytes", "[sim]") {
  start_devices(1);
  const auto a = torch::ones({3, 4}, sim::device(0));
  auto out = torch::empty({0}, sim::device(0));
  const auto handle = out;
  torch::add_out(out, a, a);
  CHECK(handle.is_same(out));
  CHECK(same_bits(handle, torch::full({3, 4}, 2.0F)));
  CHECK(out.storage().nbytes() == 12 * sizeof(float));
  auto first = torch::empty({0}, sim::device(0));
  auto second =
      torch::empty({0}, torch::device(sim::device(0)).dtype(at::kLong));
  torch::max_out(first, second, a, 1);
  CHECK(same_bits(second, torch::zeros({3}, at::kLong)));
  auto grown = torch::ones({2}, sim::device(0));
  grown.resize_({100});
  CHECK(same_bits(grown.slice(0, 0, 2), torch::ones({2})));
  grown.set_(a);
  CHECK(grown.is_alias_of(a));
  CHECK(
      sim::memory_statistics(sim::device(0)).current_bytes ==
      (12 + 12 + 3) * 4 + 3 * 8);
}

TEST_CASE("operators of every kind give the CPU's bits", "[sim]") {
  start_devices();
  const auto x = normal({4, 6}, 1);
  const auto y = normal({4, 6}, 2);
  const auto image = normal({2, 3, 8, 8}, 3);
  check_as_on_cpu({x, y}, [](auto& in) { return in[0] * in[1] - in[0] / 3; });
  check_as_on_cpu({x}, [](auto& in) { return in[0].softmax(1).cumsum(0); });
  check_as_on_cpu({x}, [](auto& in) { return in[0].index({in[0] > 0}); });
  check_as_on_cpu({x}, [](auto& in) { return in[0].nonzero(); });
  check_as_on_cpu({x}, [](auto& in) { return std::get<1>(in[0].sort(1)); });
  check_as_on_cpu({x}, [](auto& in) { return std::get<0>(in[0].topk(2)); });
  check_as_on_cpu({x}, [](auto& in) { return in[0].norm(); });
  check_as_on_cpu({x, y}, [](auto& in) {
    return torch::einsum("ij,kj->ik", {in[0], in[1]});
  });
  check_as_on_cpu({x}, [](auto& in) {
    return std::get<0>(at::_unique(in[0]));
  });
  check_as_on_cpu({x, y}, [](auto& in) {
    return at::_foreach_add({in[0], in[1]}, 2)[1];
  });
  check_as_on_cpu({x}, [](auto& in) {
    return std::get<1>(torch::linalg_svd(in[0]));
  });
  check_as_on_cpu({image}, [](auto& in) {
    return at::upsample_bilinear2d(
        at::reflection_pad2d(in[0], {1, 1, 1, 1}),
        {5, 7},
        false);
  });
  check_as_on_cpu({normal({3, 4, 3, 3}, 4), image}, [](auto& in) {
    return torch::conv_transpose2d(in[1], in[0]);
  });
  check_as_on_cpu({normal({2, 4, 5, 8}, 5)}, [](auto& in) {
    return at::scaled_dot_product_attention(in[0], in[0], in[0]);
  });
}

TEST_CASE("half, bfloat16 and complex numbers give the CPU's bits", "[sim]") {
  start_devices();
  const auto x = normal({4, 4}, 1);
  for (const auto dtype : {at::kHalf, at::kBFloat16, at::kDouble}) {
    check_as_on_cpu({x.to(dtype)}, [](auto& in) {
      return in[0].mm(in[0]).tanh();
    });
  }
  check_as_on_cpu({x}, [](auto& in) {
    return torch::fft::ifft(torch::fft::fft(in[0]).conj());
  });
  const auto z = torch::complex(x, x.t());
  check_as_on_cpu({z}, [](auto& in) {
    return at::imag(in[0].conj().mm(in[0]));
  });
  check_as_on_cpu({z}, [](auto& in) { return in[0].conj().clone(); });
}

TEST_CASE("sparse tensors give the CPU's bits", "[sim]") {
  start_devices();
  const auto x = normal({5, 3}, 1);
  const auto sparse = torch::relu(normal({4, 5}, 2)).to_sparse();
  check_as_on_cpu({sparse, x}, [](auto& in) { return in[0].mm(in[1]); });
  check_as_on_cpu({sparse}, [](auto& in) { return in[0].to_dense(); });
  check_as_on_cpu({x}, [](auto& in) {
    return torch::relu(in[0]).to_sparse().to_dense();
  });
  check_as_on_cpu({sparse}, [](auto& in) {
    return (in[0] + in[0]).coalesce().values();
  });
  check_as_on_cpu({sparse}, [](auto& in) {
    return in[0].clone().mul_(3).to_dense();
  });
}

TEST_CASE("a device's generator gives the CPU's numbers for a seed", "[sim]") {
  start_devices();
  const Tensors ones{torch::ones({50})};
  check_as_on_cpu(ones, [](auto& in) { return torch::randn_like(in[0]); });
  check_as_on_cpu(ones, [](auto& in) { return torch::rand_like(in[0]); });
  check_as_on_cpu(ones, [](auto& in) {
    return torch::randperm(50, in[0].options().dtype(at::kLong));
  });
  check_as_on_cpu(ones, [](auto& in) { return torch::multinomial(in[0], 7); });
  for (const double p : {0.1, 0.2, 0.3, 0.4, 0.6, 0.7}) {
    check_as_on_cpu(ones, [=](auto& in) {
      return torch::dropout(torch::dropout(in[0], p, true), p, true);
    });
    check_as_on_cpu(ones, [=](auto& in) {
      return std::get<0>(at::native_dropout(in[0], p, true));
    });
  }
}

TEST_CASE("dropout on a device leaves the CPU's generator alone", "[sim]") {
  start_devices(1);
  torch::nn::LSTM layers(
      torch::nn::LSTMOptions(3, 4).num_layers(2).dropout(0.5));
  layers->to(sim::device(0));
  const auto input = torch::ones({2, 5, 3}, sim::device(0));
  torch::manual_seed(5);
  const auto expected = torch::randn({3});
  torch::manual_seed(5);
  const auto first = std::get<0>(layers(input));
  const auto second = std::get<0>(layers(input));
  at::native_dropout(input, 0.5, true);
  torch::dropout(input, 0.5, true);
  CHECK(same_bits(torch::randn({3}), expected));
  CHECK_FALSE(same_bits(first, second));
}

TEST_CASE("each device has a generator of its own", "[sim]") {
  start_devices(2);
  torch::manual_seed(5);
  const auto first = torch::randn({3}, sim::device(0));
  const auto other = torch::randn({3}, sim::device(1));
  CHECK(same_bits(first, other));
  auto generator = at::globalContext().defaultGenerator(sim::device(1));
  CHECK(generator.device() == sim::device(1));
  const auto state = generator.get_state();
  const auto next = torch::randn({3}, sim::device(1));
  CHECK_FALSE(same_bits(next, other));
  generator.set_state(state);
  CHECK(same_bits(torch::randn({3}, sim::device(1)), next));
  // Neither drew from the CPU's.
  const auto host = torch::randn({3});
  torch::manual_seed(5);
  CHECK(same_bits(host, torch::randn({3})));
  CHECK_THROWS_AS(
      torch::zeros({3}, sim::device(0))
          .normal_(0, 1, at::detail::createCPUGenerator(1)),
      ShapeError);
}

TEST_CASE("autocast casts as on other accelerators", "[sim]") {
  start_devices();
  torch::nn::Linear linear(8, 8);
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({8}));
  linear->to(sim::device(0));
  norm->to(sim::device(0));
  at::autocast::set_autocast_dtype(at::kPrivateUse1, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kPrivateUse1, true);
  at::autocast::increment_nesting();
  const auto hidden = linear(torch::ones({4, 8}, sim::device(0)));
  CHECK(hidden.scalar_type() == at::kBFloat16);
  CHECK(norm(hidden).scalar_type() == at::kFloat);
  CHECK(torch::softmax(hidden, 1).scalar_type() == at::kFloat);
  CHECK(
      torch::linear(torch::ones({4, 8}), torch::ones({8, 8})).scalar_type() ==
      at::kFloat);
  hidden.sum().backward();
  CHECK(linear->weight.grad().scalar_type() == at::kFloat);
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
  }
  at::autocast::set_autocast_enabled(at::kPrivateUse1, false);
  CHECK(
      linear(torch::ones({4, 8}, sim::device(0))).scalar_type() == at::kFloat);
}

TEST_CASE("the CPU's autocast leaves device tensors alone", "[sim]") {
  start_devices();
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  check_as_on_cpu({torch::ones({2})}, [](auto& in) { return in[0] + 1; });
  const auto x = torch::ones({2, 2}, sim::device(0));
  CHECK(x.mm(x).scalar_type() == at::kFloat);
  const auto image = torch::ones({1, 1, 3, 3}, sim::device(0));
  CHECK(torch::conv2d(image, image).scalar_type() == at::kFloat);
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

TEST_CASE("streams and events have LibTorch's interface", "[sim]") {
  start_devices(2);
  const c10::impl::VirtualGuardImpl guard(at::kPrivateUse1);
  const auto usual = guard.getStream(sim::device(1));
  const auto other = guard.getStreamFromGlobalPool(sim::device(1));
  CHECK(usual == guard.getDefaultStream(sim::device(1)));
  CHECK(usual != other);
  CHECK(other.device() == sim::device(1));
  c10::Event start(at::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(at::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  CHECK(start.query());
  start.record(usual);
  start.block(other);
  {
    const c10::StreamGuard on_other(other);
    CHECK(guard.getStream(sim::device(1)) == other);
    CHECK(guard.getStream(sim::device(0)).id() == usual.id());
    const auto x = torch::ones({4}, sim::device(1)).requires_grad_();
    (x * 2).sum().backward();
    x.record_stream(usual);
    CHECK(same_bits(x.grad(), torch::full({4}, 2.0F)));
  }
  CHECK(guard.getStream(sim::device(1)) == usual);
  end.record(other);
  end.synchronize();
  CHECK(end.query());
  CHECK(start.elapsedTime(end) > 0);
}

TEST_CASE("in-place changes of what backward needs are found", "[sim]") {
  start_devices(1);
  const auto x = torch::ones({4}, sim::device(0)).requires_grad_();
  const auto y = x.exp();
  const auto z = (y * y).sum();
  y.add_(1);
  CHECK_THROWS_AS(z.backward(), c10::Error);

  torch::nn::GRU layer(2, 3);
  layer->to(sim::device(0));
  const auto output =
      std::get<0>(layer(torch::ones({2, 1, 2}, sim::device(0)))).sum();
  {
    const at::NoGradGuard no_grad;
    layer->parameters().at(1).add_(1);
  }
  CHECK_THROWS_AS(output.backward(), c10::Error);
}

TEST_CASE("second derivatives give the CPU's bits", "[sim]") {
  start_devices();
  check_as_on_cpu({normal({4}, 1)}, [](auto& in) {
    const auto x = in[0].detach().requires_grad_();
    const auto first =
        torch::autograd::grad({(x * x * x).sum()}, {x}, {}, true, true)[0];
    return torch::autograd::grad({first.sum()}, {x})[0];
  });
}

TEST_CASE("inference mode and printing work", "[sim]") {
  start_devices(1);
  const c10::InferenceMode inference;
  const auto x = torch::ones({2, 2}, sim::device(0));
  CHECK(same_bits((x + x).mm(x.t()).add_(1), torch::full({2, 2}, 5.0F)));
  std::ostringstream text;
  text << x;
  CHECK(text.str().find("2,2") != std::string::npos);
}

} // namespace tandem::sim_test
