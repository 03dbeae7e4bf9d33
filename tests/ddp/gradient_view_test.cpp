#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

constexpr int64_t kViewSteps = 6;

void step_mlp(
    DistributedDataParallel<MlpImpl>& model,
    const RankContext& context,
    int64_t step) {
  const auto batch = normal({kRows, 2}, static_cast<uint64_t>(step));
  model(share(batch, context)).square().mean().backward();
}

TEST_CASE("gradients are views into their bucket", "[ddp][DDP-70]") {
  for (const bool set_to_none : {true, false}) {
    run_ranks(2, [&](RankContext& context) {
      Mlp net;
      DistributedDataParallel model(net);
      std::vector<const void*> first;
      for (int64_t step = 0; step < kViewSteps; ++step) {
        model->zero_grad(set_to_none);
        step_mlp(model, context, step);
        std::vector<const void*> addresses;
        for (const auto& parameter : net->parameters()) {
          TORCH_CHECK(
              parameter.grad().is_alias_of(net->parameters().front().grad()));
          addresses.push_back(parameter.grad().data_ptr());
        }
        first = step == 0 ? addresses : first;
        TORCH_CHECK(addresses == first, "step ", step);
      }
    });
  }
}

TEST_CASE("gradients are copies if views are off", "[ddp][DDP-70]") {
  run_ranks(2, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(
        net,
        Options().gradient_as_bucket_view(false));
    step_mlp(model, context, 0);
    const auto& parameters = net->parameters();
    TORCH_CHECK(!parameters[0].grad().is_alias_of(parameters[1].grad()));
  });
}

TEST_CASE("gradients keep the parameter's strides", "[ddp][DDP-70]") {
  run_ranks(2, [](RankContext& context) {
    torch::nn::Conv2d net(torch::nn::Conv2dOptions(3, 4, 2));
    net->weight.set_data(
        net->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
    DistributedDataParallel model(net);
    model(normal({1, 3, 4, 4}, 5 + context.rank(), at::kFloat))
        .sum()
        .backward();
    TORCH_CHECK(net->weight.grad().strides() == net->weight.strides());
  });
}

/// Zeroes in place in steps where `in_place` has a one, to none otherwise.
template <typename Optimizer, typename OptimizerOptions>
at::Tensor train_with(
    Mlp net,
    const std::function<at::Tensor(const at::Tensor&)>& forward,
    const OptimizerOptions& options,
    const RankContext* context,
    const std::vector<bool>& in_place) {
  Optimizer optimizer(net->parameters(), options);
  for (size_t step = 0; step < in_place.size(); ++step) {
    auto batch = normal({kRows, 2}, step);
    batch = context == nullptr ? batch : share(batch, *context);
    optimizer.zero_grad(!in_place[step]);
    forward(batch).square().mean().backward();
    optimizer.step();
  }
  return flat_parameters(*net);
}

template <typename Optimizer, typename OptimizerOptions>
void check_zeroing(const OptimizerOptions& options) {
  const std::vector<bool> in_place{false, true, true, false, true, false};
  Mlp alone;
  const auto expected = train_with<Optimizer>(
      alone,
      [&](const at::Tensor& batch) { return alone(batch); },
      options,
      nullptr,
      in_place);
  run_ranks(2, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    const auto trained = train_with<Optimizer>(
        net,
        [&](const at::Tensor& batch) { return model(batch); },
        options,
        &context,
        in_place);
    TORCH_CHECK(torch::allclose(trained, expected, 1e-10, 1e-10));
  });
}

TEST_CASE("views survive both ways of zeroing", "[ddp][DDP-71]") {
  check_zeroing<torch::optim::SGD>(
      torch::optim::SGDOptions(0.05).momentum(0.9));
  check_zeroing<torch::optim::Adam>(torch::optim::AdamOptions(1e-3));
}

TEST_CASE("a gradient replaced by the user is taken", "[ddp][DDP-71]") {
  run_ranks(2, [](RankContext& context) {
    Scale net;
    DistributedDataParallel model(net);
    const auto rank = static_cast<double>(context.rank());
    model(net->input(rank)).backward();
    net->weight.mutable_grad() = torch::full({1}, 4.0f);
    model(net->input(rank)).backward();
    TORCH_CHECK(net->weight.grad().item<double>() == 4.5);
  });
}

TEST_CASE("clipping in place works on views", "[ddp][DDP-73]") {
  const auto clipped = [](Mlp& net) {
    const double norm =
        torch::nn::utils::clip_grad_norm_(net->parameters(), 0.1);
    torch::optim::SGD(net->parameters(), 0.5).step();
    return torch::cat(
        {torch::full({1}, norm, at::kDouble), flat_parameters(*net)});
  };
  Mlp alone;
  alone(normal({kRows, 2}, 0)).square().mean().backward();
  const auto expected = clipped(alone);
  CHECK(expected[0].item<double>() > 0.1);
  const auto ranks = run_ranks(2, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    step_mlp(model, context, 0);
    return clipped(net);
  });
  for (const auto& rank : ranks) {
    CHECK(torch::allclose(rank, expected, 1e-10, 1e-10));
  }
}

} // namespace
} // namespace tandem::test
