#include <atomic>
#include <future>
#include <stdexcept>

#include <tandem/core/errors.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// Linear, but refuses an input that contains 7.
struct RefusesSevenImpl : torch::nn::Cloneable<RefusesSevenImpl> {
  RefusesSevenImpl() {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({1}));
  }
  at::Tensor forward(const at::Tensor& input) {
    if (input.eq(7).any().item<bool>()) {
      throw std::out_of_range("wonderful");
    }
    TORCH_CHECK_INDEX(!input.eq(8).any().item<bool>(), "no eights");
    return input * weight;
  }
  at::Tensor weight;
};

} // namespace

TEST_CASE("exception of a replica names it and keeps its type", "[dp][DP-31]") {
  const auto net = on_first(std::make_shared<RefusesSevenImpl>());
  tandem::DataParallel model(net, on_devices(2));
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      model(torch::tensor({1.0, 2.0, 3.0, 7.0}));
      FAIL("nothing was thrown");
    } catch (const tandem::ReplicaError& error) {
      const std::string text = error.what();
      CHECK(contains(text, "replica 1"));
      CHECK(contains(text, devices(2)[1].str()));
      CHECK(contains(text, "wonderful"));
      REQUIRE(error.failures().size() == 1);
      CHECK(error.failures()[0].replica == 1);
      CHECK_THROWS_AS(std::rethrow_if_nested(error), std::out_of_range);
    }
    const auto input = torch::tensor({1.0, 2.0, 3.0, 4.0});
    const auto output = model(input);
    CHECK(is_equal(output, input));
    net->zero_grad();
    output.sum().backward();
    CHECK(net->weight.grad().item<double>() == 10);
  }
}

TEST_CASE(
    "LibTorch's exceptions keep their type, with context",
    "[dp][DP-31]") {
  tandem::DataParallel model(
      on_first(std::make_shared<RefusesSevenImpl>()),
      on_devices(2));
  for (const int64_t bad_row : {0, 3}) {
    auto input = torch::ones({4});
    input[bad_row] = 8;
    CHECK_THROWS_AS(model(input), c10::IndexError);
    const auto text = message_thrown_by([&] { model(input); });
    CHECK(contains(text, "no eights"));
    const auto replica = bad_row == 0 ? 0 : 1;
    CHECK(contains(
        text,
        c10::str("replica ", replica, " on ", devices(2)[replica])));
  }
}

TEST_CASE("all failed replicas are in one exception", "[dp][DP-31]") {
  tandem::DataParallel model(
      on_first(std::make_shared<RefusesSevenImpl>()),
      on_devices(3));
  try {
    model(torch::tensor({8.0, 2.0, 7.0}));
    FAIL("nothing was thrown");
  } catch (const tandem::ReplicaError& error) {
    REQUIRE(error.failures().size() == 2);
    CHECK(error.failures()[0].replica == 0);
    CHECK(error.failures()[1].replica == 2);
    CHECK(error.failures()[0].device == devices(3)[0]);
    CHECK(error.failures()[1].device == devices(3)[2]);
    CHECK_THROWS_AS(
        std::rethrow_exception(error.failures()[0].exception),
        c10::IndexError);
    CHECK_THROWS_AS(
        std::rethrow_exception(error.failures()[1].exception),
        std::out_of_range);
    CHECK(contains(error.what(), "no eights"));
    CHECK(contains(error.what(), "wonderful"));
    CHECK_THROWS_AS(std::rethrow_if_nested(error), c10::IndexError);
  }
}

TEST_CASE("an exception leaves no replica running", "[dp][DP-31]") {
  std::promise<void> failed;
  std::atomic<int> finished{0};
  // Of 5 rows on 3 devices replica 2 has one, and fails while others wait.
  const auto fails_last = [&, failure = failed.get_future().share()](
                              const at::Tensor& input) -> at::Tensor {
    if (input.size(0) == 1) {
      failed.set_value();
      throw std::runtime_error("the last one");
    }
    failure.wait();
    ++finished;
    return input;
  };
  auto model = wrap_function(fails_last, on_devices(3));
  CHECK_THROWS_AS(model(torch::ones({5})), tandem::ReplicaError);
  CHECK(finished == 2);
}

TEST_CASE("exceptions that are no std::exception arrive too", "[dp][DP-31]") {
  const auto throws = [](const at::Tensor& input) -> at::Tensor {
    if (input.sum().item<double>() > 0) {
      throw 42; // NOLINT(bugprone-std-exception-baseclass)
    }
    return input;
  };
  auto model = wrap_function(throws, on_devices(2));
  CHECK_THROWS_AS(model(torch::ones({2})), tandem::ReplicaError);
  CHECK(model(torch::zeros({2})).size(0) == 2);
}

TEST_CASE("call from within the module's own forward is refused", "[dp]") {
  std::function<at::Tensor(const at::Tensor&)> recursion;
  const auto recurse = [&recursion](const at::Tensor& input) {
    return recursion(input);
  };
  auto model = wrap_function(recurse, on_devices(2));
  recursion = [&](const at::Tensor& input) { return model(input); };
  CHECK(contains(
      message_thrown_by([&] { model(torch::ones({2})); }),
      "one call at a time"));
  recursion = [](const at::Tensor& input) { return input; };
  CHECK(model(torch::ones({2})).size(0) == 2);
}

TEST_CASE("null module is refused", "[dp]") {
  CHECK_THROWS_AS(
      tandem::DataParallel(std::shared_ptr<RefusesSevenImpl>(), on_devices(2)),
      tandem::ConfigError);
}
