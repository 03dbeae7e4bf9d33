#include <ranges>

#include <ATen/autocast_mode.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// bfloat16 autocast on the tested devices and the CPU while it lives.
class Autocast {
 public:
  Autocast() {
    for (const auto type : {at::kCPU, device_type()}) {
      before_.push_back(
          {type,
           at::autocast::is_autocast_enabled(type),
           at::autocast::get_autocast_dtype(type)});
      at::autocast::set_autocast_enabled(type, true);
      at::autocast::set_autocast_dtype(type, at::kBFloat16);
    }
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    for (const auto& state : before_ | std::views::reverse) {
      at::autocast::set_autocast_enabled(state.type, state.was_enabled);
      at::autocast::set_autocast_dtype(state.type, state.dtype);
    }
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  struct State {
    at::DeviceType type;
    bool was_enabled;
    at::ScalarType dtype;
  };

  std::vector<State> before_;
};

/// One row per chunk: what the running thread's state is.
at::Tensor thread_modes(const at::Tensor& /*input*/) {
  return torch::tensor(
             {at::GradMode::is_enabled() ? 1 : 0,
              c10::InferenceMode::is_enabled() ? 1 : 0,
              at::autocast::is_autocast_enabled(device_type()) ? 1 : 0,
              at::get_num_threads()})
      .unsqueeze(0);
}

} // namespace

TEST_CASE("eval mode reaches replicas and leaves buffers", "[dp][DP-26]") {
  const auto net = make_base<NormDropoutImpl>(1);
  tandem::DataParallel model(net, on_devices(3));
  const auto input = normal({8, 3}, 2);
  model(input); // in training mode: statistics and a graph exist
  model->eval();
  CHECK_FALSE(net->norm->is_training());
  const auto mean = net->norm->running_mean.clone();
  const auto batches = net->norm->num_batches_tracked.clone();
  const auto output = model(input);
  CHECK(is_close(output, net->forward(input.to(device()))));
  CHECK(net->norm->running_mean.equal(mean));
  CHECK(net->norm->num_batches_tracked.equal(batches));
  CHECK_FALSE(model->replica(2)->dropout->is_training());
  model->train();
  model(input);
  CHECK(model->replica(2)->dropout->is_training());
}

TEST_CASE("a child's own training flag reaches replicas", "[dp][DP-26]") {
  const auto net = make_base<NormDropoutImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  net->norm->eval();
  model(normal({4, 3}, 2));
  CHECK_FALSE(model->replica(1)->norm->is_training());
  CHECK(model->replica(1)->dropout->is_training());
  CHECK(model->replica(1)->is_training());
}

TEST_CASE(
    "BatchNorm's statistics are those of replica 0's rows",
    "[dp][DP-26]") {
  const auto net = make_base<torch::nn::BatchNorm1dImpl>(1, 3);
  const auto plain = make_net<torch::nn::BatchNorm1dImpl>(1, 3);
  tandem::DataParallel model(net, on_devices(2));
  for (uint64_t step = 0; step < 3; ++step) {
    const auto input = normal({7, 3}, step);
    model(input);
    plain->forward(input.narrow(0, 0, 4));
  }
  CHECK(is_close(net->running_mean, plain->running_mean));
  CHECK(is_close(net->running_var, plain->running_var));
  CHECK(net->num_batches_tracked.item<int64_t>() == 3);
}

TEST_CASE("grad and inference mode are the caller's", "[dp][DP-28]") {
  auto model = wrap_function(thread_modes, on_devices(3));
  const auto input = torch::zeros({3});
  const auto modes_are = [&](int grad, int inference) {
    const auto modes = model(input);
    REQUIRE(modes.size(0) == 3);
    CHECK(modes.select(1, 0).eq(grad).all().item<bool>());
    CHECK(modes.select(1, 1).eq(inference).all().item<bool>());
  };
  modes_are(1, 0);
  {
    const torch::NoGradGuard no_grad;
    modes_are(0, 0);
  }
  {
    const c10::InferenceMode inference;
    modes_are(0, 1);
  }
  modes_are(1, 0);
}

TEST_CASE("number of intra-op threads is the caller's", "[dp][DP-28]") {
  auto model = wrap_function(thread_modes, on_devices(2));
  const int before = at::get_num_threads();
  for (const int threads : {2, 1, 2}) {
    at::set_num_threads(threads);
    const auto modes = model(torch::zeros({2}));
    CHECK(modes.select(1, 3).eq(threads).all().item<bool>());
  }
  at::set_num_threads(before);
}

TEST_CASE(
    "inference mode between forward and backward is harmless",
    "[dp][DP-28]") {
  const auto net = make_base<ConvLinearImpl>(1);
  const auto plain = make_net<ConvLinearImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = ConvLinearImpl::input(5, 2);
  const auto loss = model(input).sin().sum();
  {
    const c10::InferenceMode inference;
    const auto output = model(input);
    CHECK(output.is_inference());
    CHECK(is_close(output.clone(), plain->forward(input)));
  }
  loss.backward();
  plain->forward(input).sin().sum().backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
}

TEST_CASE("wrapper made in inference mode trains outside it", "[dp][DP-28]") {
  const auto net = make_base<ConvLinearImpl>(1);
  const auto plain = make_net<ConvLinearImpl>(1);
  const auto input = ConvLinearImpl::input(5, 2);
  std::optional<tandem::DataParallel<ConvLinearImpl>> model;
  {
    const c10::InferenceMode inference;
    model.emplace(net, on_devices(2));
    (*model)(input);
  }
  (*model)(input).sin().sum().backward();
  plain->forward(input).sin().sum().backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
}

TEST_CASE("autocast reaches replicas", "[dp][DP-29]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 3, 2);
  const auto plain = make_base<torch::nn::LinearImpl>(1, 3, 2);
  net->to(at::kFloat);
  plain->to(at::kFloat);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({5, 3}, 2).to(at::kFloat);
  at::Tensor output;
  at::Tensor expected;
  {
    const Autocast autocast;
    output = model(input);
    expected = plain->forward(input.to(device()));
  }
  CHECK(output.scalar_type() == at::kBFloat16);
  CHECK(is_equal(output, expected));
  output.sum().backward();
  expected.sum().backward();
  CHECK(net->weight.grad().scalar_type() == at::kFloat);
  // Sums of bfloat16 chunks: 8 bits of mantissa.
  CHECK(net->weight.grad().allclose(plain->weight.grad(), 1e-2, 1e-2));
  CHECK(model(input).scalar_type() == at::kFloat);
}

TEST_CASE("autocast inside forward stays inside", "[dp][DP-30]") {
  const auto multiply = [](const at::Tensor& input) {
    const Autocast autocast;
    return input.mm(torch::ones({3, 2}, input.options()));
  };
  auto model = wrap_function(multiply, on_devices(2));
  CHECK(model(torch::ones({4, 3})).scalar_type() == at::kBFloat16);
  CHECK_FALSE(at::autocast::is_autocast_enabled(device_type()));
  auto modes = wrap_function(thread_modes, on_devices(2));
  CHECK(modes(torch::zeros({2})).select(1, 2).eq(0).all().item<bool>());
}
