#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/core/single_device.h>

#include "tandem_catch.h"

namespace {

using Catch::Matchers::ContainsSubstring;

struct AffineImpl : torch::nn::Module {
  AffineImpl() {
    linear = register_module("linear", torch::nn::Linear(3, 2));
    offset = register_buffer("offset", torch::ones({2}));
  }

  torch::Tensor forward(const torch::Tensor& input, double scale = 1.0) {
    return linear(input) * scale + offset;
  }
  std::string forward(const std::string& text) {
    return text + "!";
  }

  torch::nn::Linear linear{nullptr};
  torch::Tensor offset;
};
TORCH_MODULE(Affine);

struct MutatorImpl : torch::nn::Module {
  void forward(std::vector<torch::Tensor>& batches) {
    batches.push_back(batches.front() * 2);
  }
};
TORCH_MODULE(Mutator);

struct LabelImpl : torch::nn::Module {
  std::map<std::string, torch::Tensor> forward(
      const char* name,
      torch::Tensor&& value) {
    return {{name, std::move(value)}};
  }
};
TORCH_MODULE(Label);

} // namespace

TEST_CASE("single device returns what the module returns", "[core]") {
  torch::manual_seed(1);
  Affine net;
  tandem::SingleDevice model(net);
  const auto input = torch::randn({4, 3});
  CHECK(model(input).equal(net->forward(input)));
  CHECK(model(input, 3.0).equal(net->forward(input, 3.0)));
  CHECK(model->forward(std::string("hi")) == "hi!");
}

TEST_CASE("single device calls template forwards", "[core]") {
  torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::ReLU());
  tandem::SingleDevice model(net);
  const auto input = torch::randn({4, 3});
  CHECK(model(input).equal(net->forward(input)));
}

TEST_CASE("single device keeps default arguments of recurrent nets", "[core]") {
  torch::nn::LSTM net(3, 5);
  tandem::SingleDevice model(net);
  const auto [output, state] = model(torch::randn({2, 1, 3}));
  CHECK(output.sizes() == at::IntArrayRef{2, 1, 5});
  CHECK(std::get<1>(state).sizes() == at::IntArrayRef{1, 1, 5});
}

TEST_CASE("single device passes references and arrays as they came", "[core]") {
  Mutator mutator;
  tandem::SingleDevice model(mutator);
  std::vector<torch::Tensor> batches{torch::ones({1})};
  model(batches);
  REQUIRE(batches.size() == 2);
  CHECK(batches[1].item<double>() == 2);

  Label label;
  tandem::SingleDevice named(label);
  CHECK(named("loss", torch::ones({2})).count("loss") == 1);
}

TEST_CASE("single device moves inputs to its device", "[core]") {
  auto net = std::make_shared<torch::nn::IdentityImpl>();
  tandem::SingleDevice model(
      net,
      tandem::SingleDeviceOptions().device(at::Device(at::kMeta)));
  CHECK(model(torch::ones({2})).device() == at::Device(at::kMeta));
}

TEST_CASE("single device refuses a parameter elsewhere by name", "[core]") {
  struct SplitImpl : torch::nn::Module {
    SplitImpl() {
      register_parameter("here", torch::ones({2}));
      register_parameter("there", torch::empty({2}, at::kMeta));
    }
    torch::Tensor forward(torch::Tensor input) {
      return input;
    }
  };
  const auto net = std::make_shared<SplitImpl>();
  CHECK_THROWS_WITH(
      tandem::SingleDevice{net},
      ContainsSubstring("parameter 'there'") && ContainsSubstring("cpu") &&
          ContainsSubstring("meta"));
}

TEST_CASE("wrapper refuses a null module", "[core]") {
  std::shared_ptr<AffineImpl> none;
  CHECK_THROWS_AS(tandem::SingleDevice(none), tandem::ConfigError);
}

TEST_CASE("wrapper shows the bare names, Module& the prefixed ones", "[core]") {
  Affine net;
  tandem::SingleDevice model(net);
  CHECK(model->named_parameters().contains("linear.weight"));
  CHECK(model->named_buffers().contains("offset"));
  CHECK(model->named_children().contains("linear"));
  CHECK(model->parameters().size() == 2);
  const torch::nn::Module& plain = *model;
  CHECK(plain.named_parameters().contains("module.linear.weight"));
  CHECK(plain.parameters().size() == 2);
}

TEST_CASE("wrapper delegates train, eval, zero_grad and to", "[core]") {
  Affine net;
  net->eval();
  tandem::SingleDevice model(net);
  CHECK_FALSE(model->is_training());
  model->train();
  CHECK(net->linear->is_training());
  model->eval();
  CHECK_FALSE(net->is_training());
  model(torch::ones({1, 3})).sum().backward();
  model->zero_grad();
  CHECK_FALSE(net->linear->weight.grad().defined());
  model->to(torch::kDouble);
  CHECK(net->linear->weight.scalar_type() == torch::kDouble);
}

TEST_CASE("wrapper saves what the bare module loads, and back", "[core]") {
  torch::manual_seed(2);
  Affine net;
  Affine other;
  tandem::SingleDevice model(net);
  std::stringstream from_wrapper;
  torch::save(model, from_wrapper);
  torch::load(other, from_wrapper);
  CHECK(other->linear->weight.equal(net->linear->weight));

  torch::nn::init::zeros_(other->linear->weight);
  std::stringstream from_bare;
  torch::save(other, from_bare);
  torch::load(model, from_bare);
  CHECK(net->linear->weight.equal(torch::zeros({2, 3})));
}

TEST_CASE("no_sync nests and ends with its last guard", "[core]") {
  Affine net;
  tandem::SingleDevice model(net);
  {
    auto outer = model->no_sync();
    {
      auto inner = model->no_sync();
      auto moved = std::move(inner);
      CHECK_FALSE(model->gradient_sync());
    }
    CHECK_FALSE(model->gradient_sync());
  }
  CHECK(model->gradient_sync());
}

TEST_CASE("mean_loss takes losses per row or their sum", "[core]") {
  Affine net;
  net->to(torch::kDouble);
  tandem::SingleDevice model(net);
  const auto input = torch::randn({5, 3}, torch::kDouble);
  const auto target = torch::randn({5, 2}, torch::kDouble);
  const auto rows = [](const torch::Tensor& y, const torch::Tensor& t) {
    return (y - t).pow(2).sum(1);
  };
  const auto sum = [&](const torch::Tensor& y, const torch::Tensor& t) {
    return rows(y, t).sum();
  };
  const auto expected = rows(net->forward(input), target).mean();
  CHECK(model->mean_loss(rows, target, input).allclose(expected));
  CHECK(model->mean_loss(sum, target, input, 1.0).allclose(expected));
}

TEST_CASE("mean_loss refuses a target without rows", "[core]") {
  Affine net;
  tandem::SingleDevice model(net);
  const auto criterion = [](const torch::Tensor& y, const auto&) { return y; };
  const auto input = torch::ones({1, 3});
  CHECK_THROWS_AS(
      model->mean_loss(criterion, std::optional<torch::Tensor>(), input),
      tandem::ShapeError);
  CHECK_THROWS_WITH(
      model->mean_loss(criterion, torch::tensor(1.0), input),
      ContainsSubstring("target") && ContainsSubstring("got 0"));
}

TEST_CASE("describe states device, parameters and bytes", "[core]") {
  Affine net;
  tandem::SingleDevice model(net);
  CHECK_THAT(
      model->describe(),
      ContainsSubstring("cpu") &&
          ContainsSubstring("2 parameters (32 bytes)") &&
          ContainsSubstring("1 buffer (8 bytes)"));
  model(torch::ones({1, 3}));
  CHECK(model->counters().forwards == 1);
}
