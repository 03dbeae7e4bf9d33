#include <mutex>
#include <set>
#include <thread>

#include <tandem/core/errors.h>

#include "nets.h"
#include "scatter.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// Doubles its input and keeps rows, thread and device of every call.
struct RowCounter {
  struct Log {
    std::mutex mutex;
    std::multiset<int64_t> rows;
    std::set<std::thread::id> threads;
    std::multiset<std::string> devices;
  };

  at::Tensor operator()(const at::Tensor& input) const {
    const std::lock_guard lock(log->mutex);
    log->rows.insert(input.size(0));
    log->threads.insert(std::this_thread::get_id());
    log->devices.insert(input.device().str());
    return input * 2;
  }

  std::shared_ptr<Log> log = std::make_shared<Log>();
};

} // namespace

TEST_CASE("chunks follow the rule of at::chunk", "[dp][DP-02][only-cpu]") {
  using tandem::detail::plan_chunks;
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 16, 17}) {
    for (const size_t devices : {1, 2, 3, 4, 7}) {
      std::vector<int64_t> expected;
      for (const auto& chunk :
           torch::zeros({rows}).chunk(static_cast<int64_t>(devices))) {
        expected.push_back(chunk.size(0));
      }
      INFO(rows << " rows, " << devices << " devices");
      CHECK(plan_chunks(rows, devices) == expected);
    }
  }
  CHECK(plan_chunks(5, 4) == std::vector<int64_t>{2, 2, 1});
  CHECK(plan_chunks(0, 3) == std::vector<int64_t>{0});
}

TEST_CASE("even batch is halved, with gradients through it", "[dp][DP-01]") {
  const RowCounter counter;
  auto model = wrap_function(counter, on_devices(2));
  const auto input = torch::ones({10}, torch::kDouble).requires_grad_();
  const auto output = model(input);
  output.sum().backward();
  CHECK(counter.log->rows == std::multiset<int64_t>{5, 5});
  CHECK(counter.log->threads.size() == 2);
  CHECK(
      counter.log->devices ==
      std::multiset<std::string>{devices(2)[0].str(), devices(2)[1].str()});
  CHECK(output.device() == device());
  CHECK(is_equal(output, torch::full({10}, 2.0, torch::kDouble)));
  CHECK(input.grad().equal(torch::full({10}, 2.0, torch::kDouble)));
}

TEST_CASE("uneven batch runs as few replicas as it has chunks", "[dp][DP-02]") {
  const auto input = torch::arange(5, torch::kDouble);
  const RowCounter two;
  CHECK(is_equal(wrap_function(two, on_devices(2))(input), input * 2));
  CHECK(two.log->rows == std::multiset<int64_t>{2, 3});
  const RowCounter four;
  CHECK(is_equal(wrap_function(four, on_devices(4))(input), input * 2));
  CHECK(four.log->rows == std::multiset<int64_t>{1, 2, 2});
  CHECK(four.log->threads.size() == 3);
}

TEST_CASE("one row runs on one replica alone", "[dp][DP-03]") {
  for (const size_t devices : {2, 4}) {
    const auto net = make_base<torch::nn::LinearImpl>(1, 10, 5);
    const auto plain = make_net<torch::nn::LinearImpl>(1, 10, 5);
    tandem::DataParallel model(net, on_devices(devices));
    const auto input = normal({1, 10}, 2);
    const auto output = model(input);
    CHECK(is_close(output, plain->forward(input)));
    output.sum().backward();
    plain->forward(input).sum().backward();
    CHECK(are_close(grads_of(*net), grads_of(*plain)));
  }
}

TEST_CASE("inputs may lie on any device, and gradients return", "[dp][DP-01]") {
  const auto product = [](const at::Tensor& a, const at::Tensor& b) {
    return a * b;
  };
  for (const auto& place : {at::Device(at::kCPU), device(), devices(2)[1]}) {
    auto model = wrap_function(product, on_devices(4));
    const auto a = normal({7, 2}, 1).to(place).requires_grad_();
    const auto b = normal({7, 2}, 2).requires_grad_();
    const auto output = model(a, b);
    CHECK(output.device() == device());
    output.sum().backward();
    CHECK(a.grad().device() == place);
    CHECK(is_equal(a.grad(), b.detach()));
    CHECK(is_equal(b.grad(), a.detach().cpu()));
  }
}

TEST_CASE("batch without rows is as with the bare module", "[dp]") {
  const size_t count = GENERATE(1, 2, 4);
  const auto check = [&](const auto& net, const auto& plain, auto input) {
    on_first(net);
    tandem::DataParallel model(net, on_devices(count));
    const auto output = model(input);
    const auto expected = plain->forward(input);
    CHECK(is_equal(output, expected));
    output.sum().backward();
    expected.sum().backward();
    CHECK(are_close(grads_of(*net), grads_of(*plain)));
    CHECK(net->parameters()[0].grad().defined());
  };
  const auto check_net = [&](const auto& make, const at::Tensor& input) {
    check(make(), make(), input);
  };
  check_net(
      [] { return make_net<torch::nn::LinearImpl>(1, 3, 2); },
      torch::zeros({0, 3}, at::kDouble));
  check_net(
      [] { return make_net<ConvLinearImpl>(1); },
      ConvLinearImpl::input(0, 1));
  check_net(
      [] { return make_net<torch::nn::EmbeddingImpl>(1, 10, 3); },
      torch::zeros({0}, at::kLong));
  check_net(
      [] {
        const auto norm = make_net<torch::nn::BatchNorm1dImpl>(1, 3);
        norm->eval();
        return norm;
      },
      torch::zeros({0, 3}, at::kDouble));
}

TEST_CASE("what the module refuses without rows is refused", "[dp]") {
  const auto flatten = [](const at::Tensor& input) {
    return input.reshape({input.size(0), -1});
  };
  auto model = wrap_function(flatten, on_devices(2));
  const auto empty = torch::zeros({0, 3, 2});
  const auto bare = message_thrown_by([&] { flatten(empty); });
  const auto reason = bare.substr(0, bare.find('\n'));
  CHECK(contains(reason, "reshape"));
  CHECK(contains(message_thrown_by([&] { model(empty); }), reason));
  CHECK(model(torch::zeros({3, 3, 2})).sizes() == at::IntArrayRef{3, 6});
}

TEST_CASE("empty batch is one chunk and keeps its shape", "[dp]") {
  const RowCounter counter;
  auto model = wrap_function(counter, on_devices(2));
  const auto output = model(torch::zeros({0, 3}));
  CHECK(output.sizes() == at::IntArrayRef{0, 3});
  CHECK(counter.log->rows == std::multiset<int64_t>{0});
}

TEST_CASE("batch is cut along the option dim", "[dp][DP-12]") {
  const auto widths = [](const at::Tensor& input) {
    return torch::full_like(input, static_cast<double>(input.size(1)));
  };
  auto model = wrap_function(widths, on_devices(2).dim(1));
  const auto input = normal({3, 5, 2}, 1); // [T, B, F]
  const auto output = model(input);
  REQUIRE(output.sizes() == input.sizes());
  CHECK(output.narrow(1, 0, 3).eq(3).all().item<bool>());
  CHECK(output.narrow(1, 3, 2).eq(2).all().item<bool>());
  CHECK(model->batch_dim() == 1);
}

TEST_CASE(
    "recurrent net along dim 1 gives what it gives plain",
    "[dp][DP-12]") {
  const size_t count = GENERATE(2, 4);
  const auto net = make_base<torch::nn::RNNImpl>(1, 2, 3);
  const auto plain = make_net<torch::nn::RNNImpl>(1, 2, 3);
  tandem::DataParallel model(net, on_devices(count).dim(1));
  const auto input = normal({3, 4, 2}, 5); // [T, B, F]
  const auto [output, state] = model(input);
  const auto [plain_output, plain_state] = plain->forward(input);
  CHECK(is_close(output, plain_output));
  CHECK(is_close(state, plain_state));
}

TEST_CASE(
    "strided and integer inputs give what they give plain",
    "[dp][DP-13]") {
  const auto twice = [](const at::Tensor& input) { return input * 2; };
  const auto transposed = normal({4, 6}, 1).t();
  CHECK(is_equal(
      wrap_function(twice, on_devices(3))(transposed),
      transposed * 2));

  const auto net = make_base<torch::nn::EmbeddingImpl>(1, 10, 3);
  const auto plain = make_net<torch::nn::EmbeddingImpl>(1, 10, 3);
  tandem::DataParallel model(net, on_devices(4));
  const auto ids = torch::tensor({1, 9, 3, 3, 0}, torch::kInt64);
  const auto output = model(ids);
  CHECK(is_equal(output, plain->forward(ids)));
  output.pow(2).sum().backward();
  plain->forward(ids).pow(2).sum().backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
}

TEST_CASE("0-dim tensors go to all replicas and sum gradients", "[dp]") {
  const auto scaled = [](const at::Tensor& input, const at::Tensor& scale) {
    return input * scale;
  };
  auto model = wrap_function(scaled, on_devices(3));
  const auto input = torch::arange(7, torch::kDouble);
  const auto scale = torch::tensor(3.0, torch::kDouble).requires_grad_();
  const auto output = model(input, scale);
  CHECK(is_equal(output, input * 3));
  output.sum().backward();
  CHECK(scale.grad().sizes().empty());
  CHECK(scale.grad().item<double>() == 21);
}

TEST_CASE("change in place of a chunk stays in its replica", "[dp]") {
  const auto in_place = [](const at::Tensor& input) {
    return input.mul_(2) * input;
  };
  auto model = wrap_function(in_place, on_devices(2));
  const auto input = torch::arange(4, torch::kDouble);
  const auto leaf = torch::arange(4, torch::kDouble).requires_grad_();
  CHECK(is_equal(model(input), 4 * input * input));
  CHECK(input.equal(torch::arange(4, torch::kDouble)));
  model(leaf * 1).sum().backward();
  CHECK(leaf.grad().equal(8 * torch::arange(4, torch::kDouble)));
}

TEST_CASE("arguments with different numbers of chunks are refused", "[dp]") {
  const auto add = [](const at::Tensor& a, const std::vector<at::Tensor>& b) {
    return a + b.back();
  };
  auto model = wrap_function(add, on_devices(2));
  const std::vector<at::Tensor> second{
      torch::ones({4, 2}),
      torch::ones({1, 2})};
  REQUIRE_THROWS_AS(model(torch::ones({4, 2}), second), tandem::ShapeError);
  const auto message = message_thrown_by([&] {
    model(torch::ones({4, 2}), second);
  });
  CHECK(contains(message, "[1][1]"));
  CHECK(contains(message, "argument [0]"));
  CHECK(contains(message, "4 rows"));
  CHECK(contains(message, "1 rows"));
}

TEST_CASE("argument without the batch dimension is refused", "[dp]") {
  const auto same = [](const at::Tensor& input) { return input; };
  auto model = wrap_function(same, on_devices(2).dim(1));
  const auto message = message_thrown_by([&] { model(torch::ones({4})); });
  CHECK(contains(message, "argument [0]"));
  CHECK(contains(message, "2 dimensions"));
  REQUIRE_THROWS_AS(model(torch::ones({4})), tandem::ShapeError);
}
