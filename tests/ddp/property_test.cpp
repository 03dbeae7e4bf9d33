// Random modules, buckets, options, ranks and uses of parameters, against means
// that are made by hand from what each rank's bare module gets.
#include "support.h"

#include <cstdint>
#include <random>
#include <vector>

#include "tandem_catch.h"

namespace tandem::test {
namespace {

constexpr int64_t kWidth = 3;
constexpr int64_t kNumSteps = 4;

/// Numbers that are the same on every rank for the same seed.
class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}

  /// From 0 up to, not including, `end`.
  int64_t below(int64_t end) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(end));
  }
  bool coin() {
    return below(2) == 1;
  }

 private:
  std::mt19937_64 engine_;
};

/// A chain of layers, each of which a call may leave out.
struct RandomChainImpl : torch::nn::Module {
  explicit RandomChainImpl(Draw& draw) {
    const int64_t num_layers = 1 + draw.below(6);
    for (int64_t i = 0; i < num_layers; ++i) {
      const bool has_bias = draw.coin();
      layers->push_back(torch::nn::Linear(
          torch::nn::LinearOptions(kWidth, kWidth).bias(has_bias)));
      layers->ptr(static_cast<size_t>(i))
          ->to(draw.coin() ? at::kDouble : at::kFloat);
    }
  }
  at::Tensor forward(const at::Tensor& input, int64_t used) {
    auto output = input * 1; // so that there is a graph without any layer
    for (size_t i = 0; i < layers->size(); ++i) {
      if ((used >> i & 1) != 0) {
        const auto* layer = layers[i]->as<torch::nn::Linear>();
        const auto dtype = layer->weight.scalar_type();
        output = torch::tanh(
            torch::linear(output.to(dtype), layer->weight, layer->bias));
      }
    }
    return output.to(at::kDouble);
  }
  torch::nn::ModuleList layers =
      register_module("layers", torch::nn::ModuleList());
};
TORCH_MODULE(RandomChain);

RandomChain make_chain(uint64_t seed) {
  Draw draw(seed);
  RandomChain net(draw);
  fill(*net, seed);
  return net;
}

/// Mean over the ranks with zeros for what a rank did not use; undefined where
/// none used it.
std::vector<at::Tensor> mean_by_hand(
    const torch::nn::Module& module,
    const RankContext& context) {
  std::vector<at::Tensor> means;
  for (const auto& parameter : module.parameters()) {
    const auto& grad = parameter.grad();
    auto mean =
        grad.defined() ? grad.clone() : torch::zeros_like(parameter.detach());
    context.group()->all_reduce(mean, comm::ReduceOp::kMean);
    auto is_used = torch::full({1}, int64_t(grad.defined()), at::kLong);
    context.group()->all_reduce(is_used, comm::ReduceOp::kMax);
    means.push_back(is_used.item<int64_t>() != 0 ? mean : at::Tensor());
  }
  return means;
}

Options draw_options(Draw& draw) {
  auto options = Options()
                     .find_unused_parameters(true)
                     .gradient_as_bucket_view(draw.coin())
                     .first_bucket_bytes(1 + draw.below(100))
                     .bucket_cap_bytes(1 + draw.below(300))
                     .skip_all_reduce_unused_params(draw.coin());
  if (draw.coin()) {
    options.gradient_predivide_factor(1. + static_cast<double>(draw.below(3)));
  }
  return options;
}

TEST_CASE("random modules get the mean by hand", "[ddp][property][DDP-39]") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Draw of_world(seed + 1000);
    const int64_t world = 2 + of_world.below(3);
    run_ranks(world, [&](RankContext& context) {
      Draw shared(seed + 2000);
      Draw own(seed * 10 + static_cast<uint64_t>(context.rank()));
      auto bare = make_chain(seed);
      auto net = make_chain(seed);
      const auto options = draw_options(shared);
      DistributedDataParallel model(net, options);
      for (int64_t step = 0; step < kNumSteps; ++step) {
        // Sometimes the ranks use different layers, sometimes the same.
        const int64_t all = shared.below(64);
        const int64_t used = shared.coin() ? all : own.below(64);
        // At least the input has a gradient, or there is no backward.
        const auto input =
            normal(
                {2, kWidth},
                seed * 100 + static_cast<uint64_t>(10 * context.rank() + step))
                .requires_grad_();
        bare->zero_grad();
        model->zero_grad();
        bare(input, used).square().sum().backward();
        model(input, used).square().sum().backward();
        const auto expected = mean_by_hand(*bare, context);
        const auto actual = grads_of(*net);
        for (size_t i = 0; i < expected.size(); ++i) {
          TORCH_CHECK(
              is_close(actual[i], expected[i], 1e-5),
              "seed ",
              seed,
              " step ",
              step,
              " parameter ",
              i);
        }
      }
    });
  }
}

} // namespace
} // namespace tandem::test
