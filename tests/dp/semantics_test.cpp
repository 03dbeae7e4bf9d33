// Where DataParallel differs from Python's: the rows of the README's table that
// no other test shows.
#include <tandem/core/errors.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// Notes in a plain member what its forward saw.
struct NotingImpl : torch::nn::Cloneable<NotingImpl> {
  NotingImpl() {
    reset();
  }
  void reset() override {
    linear = register_module("linear", torch::nn::Linear(3, 2));
  }
  at::Tensor forward(const at::Tensor& input) {
    ++calls;
    num_parameters = parameters().size();
    return linear(input);
  }
  torch::nn::Linear linear{nullptr};
  int calls = 0;
  size_t num_parameters = 0;
};

} // namespace

TEST_CASE("members that forward sets stay in their replica", "[dp]") {
  const size_t count = GENERATE(2, 4);
  const auto net = make_base<NotingImpl>(1);
  tandem::DataParallel model(net, on_devices(count));
  model(normal({8, 3}, 1));
  model(normal({1, 3}, 2));
  CHECK(net->calls == 2);
  for (size_t replica = 1; replica < count; ++replica) {
    CHECK(model->replica(replica)->calls == 1);
    CHECK(model->replica(replica)->num_parameters == 2);
  }
}

TEST_CASE("mean of the replicas' means weighs rows unequally", "[dp]") {
  const auto net = on_first(std::make_shared<torch::nn::IdentityImpl>());
  tandem::DataParallel model(net, on_devices(2));
  const auto input = torch::arange(5, at::kDouble); // chunks of 3 and 2 rows
  const auto means = [&] {
    const auto mean = [](const at::Tensor& rows) {
      return rows.mean().unsqueeze(0);
    };
    return wrap_function(mean, on_devices(2))(input);
  }();
  CHECK(means.mean().item<double>() == 2.25);
  const auto itself = [](const at::Tensor& rows, const at::Tensor& /*target*/) {
    return rows;
  };
  CHECK(model->mean_loss(itself, input, input).item<double>() == 2);
}
