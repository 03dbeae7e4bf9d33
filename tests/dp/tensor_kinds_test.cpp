// dtypes, layouts and memory formats of parameters and gradients.
#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// Parameters of four dtypes, which meet in one product.
struct MixedImpl : torch::nn::Cloneable<MixedImpl> {
  MixedImpl() {
    reset();
  }
  void reset() override {
    narrow = register_parameter("narrow", normal({3}, 1, at::kBFloat16));
    single = register_parameter("single", normal({3}, 2, at::kFloat));
    wide = register_parameter("wide", normal({3}, 3));
    complex = register_parameter(
        "complex",
        torch::complex(normal({3}, 4), normal({3}, 5)));
    steps = register_buffer("steps", torch::tensor({1, 2, 3}, at::kLong));
  }
  at::Tensor forward(const at::Tensor& input) {
    return input * (narrow.to(at::kDouble) + single) * wide * complex * steps;
  }
  at::Tensor narrow;
  at::Tensor single;
  at::Tensor wide;
  at::Tensor complex;
  at::Tensor steps;
};

/// Four convolutions.
struct ConvStackImpl : torch::nn::Cloneable<ConvStackImpl> {
  ConvStackImpl() {
    reset();
  }
  void reset() override {
    layers = register_module(
        "layers",
        torch::nn::Sequential(
            torch::nn::Conv2d(8, 16, 2),
            torch::nn::Conv2d(16, 32, 2),
            torch::nn::Conv2d(32, 16, 2),
            torch::nn::Conv2d(16, 8, 2)));
  }
  at::Tensor forward(const at::Tensor& input) {
    return layers->forward(input);
  }
  torch::nn::Sequential layers{nullptr};
};

/// `net`, the weights of its layers alternating between these formats.
std::shared_ptr<ConvStackImpl> in_formats(
    std::shared_ptr<ConvStackImpl> net,
    const std::vector<at::MemoryFormat>& formats) {
  size_t layer = 0;
  for (auto& parameter : net->parameters()) {
    if (parameter.dim() == 4) {
      const auto format = formats[layer++ % formats.size()];
      parameter.set_data(parameter.detach().contiguous(format));
    }
  }
  return net;
}

void check_sparse(const auto& make, const at::Tensor& ids) {
  const size_t count = GENERATE(2, 4);
  const auto net = on_first(make());
  const auto plain = make();
  tandem::DataParallel model(net, on_devices(count));
  const auto output = model(ids);
  CHECK(is_close(output, plain->forward(ids)));
  output.pow(2).sum().backward();
  plain->forward(ids).pow(2).sum().backward();
  REQUIRE(net->weight.grad().is_sparse());
  CHECK(net->weight.grad().device() == device());
  const auto actual = net->weight.grad().coalesce();
  const auto expected = plain->weight.grad().coalesce();
  CHECK(is_equal(actual.indices(), expected.indices()));
  CHECK(is_close(actual.values(), expected.values()));
}

} // namespace

TEST_CASE("sparse gradients of an embedding stay sparse", "[dp][DP-44]") {
  const auto options = torch::nn::EmbeddingOptions(10, 5).sparse(true);
  check_sparse(
      [&] { return make_net<torch::nn::EmbeddingImpl>(1, options); },
      torch::tensor({1, 2, 2, 7, 1}, torch::kInt64));
}

TEST_CASE("sparse gradients of an embedding bag stay sparse", "[dp][DP-44]") {
  const auto options =
      torch::nn::EmbeddingBagOptions(10, 5).sparse(true).mode(torch::kSum);
  check_sparse(
      [&] { return make_net<torch::nn::EmbeddingBagImpl>(1, options); },
      torch::tensor({{1, 2}, {2, 7}, {0, 9}, {3, 3}, {1, 1}}, torch::kInt64));
}

TEST_CASE("float, half-width and double nets train alike", "[dp][DP-45]") {
  struct Case {
    at::ScalarType dtype;
    double tolerance;
  };
  const size_t count = GENERATE(2, 4);
  // Float: PyTorch's bound for DDP. Half and BFloat16: 11 and 8 bits of
  // mantissa, and a few roundings.
  for (const auto& [dtype, tolerance] :
       {Case{at::kDouble, 1e-10},
        Case{at::kFloat, 5e-5},
        Case{at::kHalf, 1e-2},
        Case{at::kBFloat16, 1e-1}}) {
    const auto net = make_base<torch::nn::LinearImpl>(1, 4, 3);
    const auto plain = make_net<torch::nn::LinearImpl>(1, 4, 3);
    net->to(dtype);
    plain->to(dtype);
    tandem::DataParallel model(net, on_devices(count));
    const auto input = normal({5, 4}, 2).to(dtype);
    const auto output = model(input);
    CHECK(output.scalar_type() == dtype);
    output.pow(2).mean().backward();
    plain->forward(input).pow(2).mean().backward();
    INFO(c10::toString(dtype));
    CHECK(net->weight.grad().scalar_type() == dtype);
    CHECK(are_close(grads_of(*net), grads_of(*plain), tolerance));
  }
}

TEST_CASE("parameters of several dtypes share one wrapper", "[dp][DP-45]") {
  const size_t count = GENERATE(2, 4);
  const auto net = on_first(std::make_shared<MixedImpl>());
  const auto plain = std::make_shared<MixedImpl>();
  tandem::DataParallel model(net, on_devices(count));
  const auto input = torch::complex(normal({7, 3}, 6), normal({7, 3}, 7));
  for (int step = 0; step < 2; ++step) {
    const auto output = model(input);
    const auto expected = plain->forward(input);
    CHECK(output.is_complex());
    CHECK(is_close(output, expected));
    output.abs().sum().backward();
    expected.abs().sum().backward();
    for (const auto& [name, parameter] : net->named_parameters().pairs()) {
      INFO(name);
      const auto gradient = parameter.grad();
      CHECK(gradient.scalar_type() == parameter.scalar_type());
      CHECK(is_close(
          gradient,
          plain->named_parameters()[name].grad(),
          name == "narrow"       ? 5e-2
              : name == "single" ? 1e-5
                                 : 1e-10));
    }
  }
}

TEST_CASE("weights keep their memory format", "[dp][DP-46]") {
  using at::MemoryFormat;
  const size_t count = GENERATE(2, 4);
  const std::vector<std::vector<MemoryFormat>> layouts{
      {MemoryFormat::Contiguous},
      {MemoryFormat::ChannelsLast},
      {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}};
  const auto input = normal({8, 8, 6, 6}, 2);
  for (const auto& formats : layouts) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      const double tolerance = dtype == at::kDouble ? kDoubleTolerance : 1e-5;
      const auto net = in_formats(make_base<ConvStackImpl>(1), formats);
      const auto plain = make_net<ConvStackImpl>(1);
      net->to(dtype);
      plain->to(dtype);
      tandem::DataParallel model(net, on_devices(count));
      const auto rows = input.to(dtype);
      for (int iteration = 0; iteration < 2; ++iteration) {
        net->zero_grad(/*set_to_none=*/false);
        plain->zero_grad(/*set_to_none=*/false);
        const auto output = model(rows);
        CHECK(is_close(output, plain->forward(rows), tolerance));
        output.pow(2).mean().backward();
        plain->forward(rows).pow(2).mean().backward();
        CHECK(are_close(grads_of(*net), grads_of(*plain), tolerance));
        const auto of_replica = model->replica(1)->parameters();
        for (size_t index = 0; index < of_replica.size(); ++index) {
          const auto parameter = net->parameters()[index];
          CHECK(parameter.grad().strides() == parameter.strides());
          CHECK(of_replica[index].strides() == parameter.strides());
        }
      }
    }
  }
}
