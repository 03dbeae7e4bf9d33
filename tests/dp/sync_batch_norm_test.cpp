// SyncBatchNorm over replicas: what one device computes on the whole batch.
#include <tandem/core/errors.h>
#include <tandem/core/sync_batch_norm.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;
using tandem::SyncBatchNorm;
using torch::nn::BatchNormOptions;

namespace {

constexpr int64_t kChannels = 3;

/// Two norms with something between them, for any number of dimensions.
template <typename Norm>
struct NormStackImpl : torch::nn::Cloneable<NormStackImpl<Norm>> {
  explicit NormStackImpl(const BatchNormOptions& norm_options)
      : options(norm_options) {
    reset();
  }
  void reset() override {
    first = this->register_module("first", Norm(options));
    mix = this->register_module("mix", torch::nn::Linear(kChannels, kChannels));
    second = this->register_module("second", Norm(options));
  }
  /// [N, C, ...]
  at::Tensor forward(const at::Tensor& input) {
    const auto hidden = torch::tanh(first->forward(input)).movedim(1, -1);
    return second->forward(mix(hidden).movedim(-1, 1));
  }
  BatchNormOptions options;
  Norm first{nullptr};
  torch::nn::Linear mix{nullptr};
  Norm second{nullptr};
};

using SyncStackImpl = NormStackImpl<SyncBatchNorm>;

/// Outputs, gradients of inputs and parameters, and buffers, of three steps and
/// an evaluation.
template <typename Net, typename Forward>
std::vector<at::Tensor> train(
    Net& net,
    const Forward& forward,
    const std::vector<int64_t>& sizes,
    at::ScalarType dtype = at::kDouble) {
  torch::optim::SGD optimizer(
      net.parameters(),
      // Small: larger steps would amplify what float rounds.
      torch::optim::SGDOptions(0.01).momentum(0.9));
  std::vector<at::Tensor> results;
  for (uint64_t step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    auto input = normal(sizes, step, dtype).requires_grad_();
    const auto output = forward(input);
    const auto weights = normal(sizes, step + 10, dtype).to(output.device());
    (output * weights).sum().backward();
    optimizer.step();
    results.insert(results.end(), {output.detach(), input.grad()});
    for (const auto& tensors : {grads_of(net), net.buffers()}) {
      const auto copies = snapshot(tensors);
      results.insert(results.end(), copies.begin(), copies.end());
    }
  }
  net.eval();
  results.push_back(forward(normal(sizes, 9, dtype)).detach());
  for (auto& tensor : results) {
    tensor = tensor.cpu();
  }
  return results;
}

template <typename Norm>
void check_equals_one_device(
    const BatchNormOptions& options,
    const std::vector<int64_t>& sizes,
    size_t devices,
    at::ScalarType dtype = at::kDouble,
    double tolerance = kDoubleTolerance) {
  const auto plain = make_net<NormStackImpl<Norm>>(1, options);
  const auto net = make_base<SyncStackImpl>(1, options);
  plain->to(dtype);
  net->to(dtype);
  tandem::DataParallel model(net, on_devices(devices));
  const auto actual = train(
      *net,
      [&](const at::Tensor& input) { return model(input); },
      sizes,
      dtype);
  const auto expected = train(
      *plain,
      [&](const at::Tensor& input) { return plain->forward(input); },
      sizes,
      dtype);
  REQUIRE(actual.size() == expected.size());
  for (size_t index = 0; index < expected.size(); ++index) {
    INFO("tensor " << index << ", " << sizes[0] << " rows, " << devices);
    CHECK(is_close(actual[index], expected[index], tolerance));
  }
}

/// Goes wrong in the last of its chunks, which is the one with a single row.
struct MisledImpl : torch::nn::Cloneable<MisledImpl> {
  enum class Way { kSkips, kSwaps, kThrows };
  explicit MisledImpl(Way in_way) : way(in_way) {
    reset();
  }
  void reset() override {
    first = register_module("first", SyncBatchNorm(kChannels));
    second = register_module("second", SyncBatchNorm(kChannels));
  }
  at::Tensor forward(const at::Tensor& input) {
    if (input.size(0) > 1 || !is_training()) {
      return second(first(input));
    }
    if (way == Way::kSwaps) {
      return first(second(input));
    }
    if (way == Way::kThrows) {
      first(input);
      throw std::out_of_range("wonderful");
    }
    return first(input);
  }
  Way way;
  SyncBatchNorm first{nullptr};
  SyncBatchNorm second{nullptr};
};

} // namespace

TEST_CASE("SyncBatchNorm equals one device on 1 to 5 dimensions", "[dp]") {
  const BatchNormOptions options(kChannels);
  using namespace torch::nn;
  check_equals_one_device<BatchNorm1d>(options, {8, kChannels}, 2);
  check_equals_one_device<BatchNorm1d>(options, {8, kChannels, 4}, 2);
  check_equals_one_device<BatchNorm2d>(options, {8, kChannels, 3, 2}, 2);
  check_equals_one_device<BatchNorm3d>(options, {8, kChannels, 2, 2, 3}, 2);
}

TEST_CASE("SyncBatchNorm takes uneven and one-row chunks", "[dp]") {
  const BatchNormOptions options(kChannels);
  for (const size_t devices : {2, 3, 5}) {
    for (const int64_t rows : {2, 3, 5, 7, 11}) {
      check_equals_one_device<torch::nn::BatchNorm1d>(
          options,
          {rows, kChannels},
          devices);
    }
  }
}

TEST_CASE("SyncBatchNorm honours BatchNorm's options", "[dp]") {
  for (const auto& options :
       {BatchNormOptions(kChannels).momentum(std::nullopt),
        BatchNormOptions(kChannels).momentum(0.7).eps(0.1),
        BatchNormOptions(kChannels).affine(false),
        BatchNormOptions(kChannels).track_running_stats(false)}) {
    check_equals_one_device<torch::nn::BatchNorm1d>(
        options,
        {7, kChannels, 2},
        3);
  }
}

TEST_CASE("SyncBatchNorm trains in float", "[dp]") {
  check_equals_one_device<torch::nn::BatchNorm2d>(
      BatchNormOptions(kChannels),
      {9, kChannels, 4, 4},
      2,
      at::kFloat,
      1e-4);
}

TEST_CASE("SyncBatchNorm computes narrow types like one device", "[dp]") {
  struct Case {
    at::ScalarType dtype;
    double tolerance;
  };
  // 11 and 8 bits of mantissa.
  for (const auto& [dtype, tolerance] :
       {Case{at::kHalf, 4e-3}, Case{at::kBFloat16, 3e-2}}) {
    const auto net = make_base<tandem::SyncBatchNormImpl>(1, kChannels);
    const auto plain = make_net<torch::nn::BatchNorm1dImpl>(1, kChannels);
    net->to(dtype);
    plain->to(dtype);
    tandem::DataParallel model(net, on_devices(2));
    auto input = normal({9, kChannels, 4}, 2, dtype).requires_grad_();
    auto plain_input = input.detach().clone().requires_grad_();
    const auto output = model(input).cpu();
    const auto expected = plain->forward(plain_input);
    CHECK(is_close(output, expected, tolerance));
    output.pow(2).mul(normal({9, kChannels, 4}, 3, dtype)).mean().backward();
    expected.pow(2).mul(normal({9, kChannels, 4}, 3, dtype)).mean().backward();
    CHECK(is_close(input.grad(), plain_input.grad(), tolerance));
    CHECK(is_close(net->weight.grad().cpu(), plain->weight.grad(), tolerance));
    CHECK(is_close(net->running_var.cpu(), plain->running_var, tolerance));
  }
}

TEST_CASE("gradient penalty through SyncBatchNorm is exact", "[dp]") {
  const BatchNormOptions options(kChannels);
  const auto plain =
      make_net<NormStackImpl<torch::nn::BatchNorm1d>>(1, options);
  const auto net = make_base<SyncStackImpl>(1, options);
  tandem::DataParallel model(net, on_devices(3));
  const auto penalize = [](auto& module, const auto& forward) {
    auto input = normal({8, kChannels}, 3).requires_grad_();
    const auto output = forward(input);
    const auto grads = torch::autograd::grad(
        {output.pow(3).sum()},
        {input},
        /*grad_outputs=*/{},
        /*retain_graph=*/true,
        /*create_graph=*/true);
    (output.sin().sum().to(input.device()) + grads[0].pow(2).sum()).backward();
    auto results = grads_of(module);
    results.push_back(input.grad());
    for (auto& tensor : results) {
      tensor = tensor.cpu();
    }
    return results;
  };
  CHECK(are_close(
      penalize(*net, [&](const auto& x) { return model(x); }),
      penalize(*plain, [&](const auto& x) { return plain->forward(x); })));
}

TEST_CASE("SyncBatchNorm meets without grad and in inference mode", "[dp]") {
  const BatchNormOptions options(kChannels);
  const auto plain =
      make_net<NormStackImpl<torch::nn::BatchNorm1d>>(1, options);
  const auto net = make_base<SyncStackImpl>(1, options);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({5, kChannels}, 2);
  {
    const torch::NoGradGuard no_grad;
    CHECK(is_close(model(input).cpu(), plain->forward(input)));
  }
  {
    const c10::InferenceMode inference;
    const auto output = model(input);
    CHECK(is_close(output.cpu().clone(), plain->forward(input).clone()));
  }
  CHECK(is_close(net->first->running_var.cpu(), plain->first->running_var));
}

TEST_CASE("replicas follow the statistics that all made", "[dp]") {
  const auto net = make_base<SyncStackImpl>(1, BatchNormOptions(kChannels));
  tandem::DataParallel model(net, on_devices(3));
  model(normal({7, kChannels}, 2));
  const auto expected = net->first->running_mean.cpu();
  for (size_t replica = 1; replica < 3; ++replica) {
    CHECK(
        is_equal(model->replica(replica)->first->running_mean.cpu(), expected));
  }
}

TEST_CASE("two forwards with SyncBatchNorm before one backward", "[dp]") {
  const BatchNormOptions options(kChannels);
  const auto plain =
      make_net<NormStackImpl<torch::nn::BatchNorm1d>>(1, options);
  const auto net = make_base<SyncStackImpl>(1, options);
  tandem::DataParallel model(net, on_devices(2));
  const auto loss_of = [](const auto& forward) {
    const auto first = forward(normal({5, kChannels}, 2)).pow(3).sum();
    return first + forward(normal({4, kChannels}, 3)).pow(3).sum();
  };
  loss_of([&](const auto& x) { return model(x); }).backward();
  loss_of([&](const auto& x) { return plain->forward(x); }).backward();
  for (size_t index = 0; index < plain->parameters().size(); ++index) {
    CHECK(is_close(grads_of(*net)[index].cpu(), grads_of(*plain)[index]));
  }
}

TEST_CASE("SyncBatchNorm gives the same bits at every run", "[dp]") {
  std::vector<at::Tensor> first;
  for (int run = 0; run < 20; ++run) {
    const auto net = make_base<SyncStackImpl>(1, BatchNormOptions(kChannels));
    net->to(at::kFloat);
    tandem::DataParallel model(net, on_devices(4));
    const auto results = train(
        *net,
        [&](const at::Tensor& input) { return model(input); },
        {9, kChannels, 5},
        at::kFloat);
    if (run == 0) {
      first = results;
    }
    CHECK(are_close(results, first, 0));
  }
}

TEST_CASE("a replica that skips a SyncBatchNorm is named", "[dp][DP-31]") {
  const auto net = make_base<MisledImpl>(1, MisledImpl::Way::kSkips);
  tandem::DataParallel model(net, on_devices(3));
  const auto input = normal({5, kChannels}, 2); // chunks of 2, 2, 1
  const auto message = message_thrown_by([&] { model(input); });
  CHECK(contains(message, "at 'second'"));
  CHECK(contains(message, "replica 2 on " + devices(3)[2].str()));
  CHECK(contains(message, "at the end of its forward"));
  CHECK_THROWS_AS(model(input), tandem::Error);
  CHECK(model(normal({6, kChannels}, 2)).size(0) == 6);
}

TEST_CASE("replicas at different SyncBatchNorms are named", "[dp][DP-31]") {
  const auto net = make_base<MisledImpl>(1, MisledImpl::Way::kSwaps);
  tandem::DataParallel model(net, on_devices(2));
  const auto message = message_thrown_by([&] {
    model(normal({3, kChannels}, 2));
  });
  CHECK(contains(message, "replica 0 on " + devices(2)[0].str()));
  CHECK(contains(message, "at 'first'"));
  CHECK(contains(message, "at 'second'"));
}

TEST_CASE("a replica that throws between norms holds nobody", "[dp][DP-31]") {
  const auto net = make_base<MisledImpl>(1, MisledImpl::Way::kThrows);
  tandem::DataParallel model(net, on_devices(3));
  const auto input = normal({5, kChannels}, 2); // chunks of 2, 2, 1
  for (int attempt = 0; attempt < 1000; ++attempt) {
    try {
      model(input);
      FAIL("expected an exception");
    } catch (const tandem::ReplicaError& error) {
      REQUIRE(error.failures().size() == 1);
      REQUIRE(error.failures()[0].replica == 2);
      REQUIRE_THROWS_AS(error.rethrow_nested(), std::out_of_range);
    }
  }
  model->eval();
  CHECK(model(input).size(0) == 5);
}
