#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

const auto kSquaredError = [](const at::Tensor& output,
                              const at::Tensor& target) {
  return (output - target).square().sum(1);
};

/// Rows of each rank: uneven, one rank without any.
const std::vector<int64_t> kRowsOfRank{3, 0, 4};

at::Tensor rows_of(const at::Tensor& batch, int64_t rank) {
  return batch.split_with_sizes(kRowsOfRank)[static_cast<size_t>(rank)];
}

TEST_CASE("mean loss over uneven ranks is the whole batch's", "[ddp]") {
  const auto input = normal({7, 2}, 1);
  const auto target = normal({7, 4}, 2);
  Mlp alone;
  const auto expected = kSquaredError(alone(input), target).mean();
  expected.backward();
  const auto losses = run_ranks(3, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    const auto loss = model->mean_loss(
        kSquaredError,
        rows_of(target, context.rank()),
        rows_of(input, context.rank()));
    loss.backward();
    for (size_t i = 0; i < net->parameters().size(); ++i) {
      TORCH_CHECK(torch::allclose(
          net->parameters()[i].grad(),
          alone->parameters()[i].grad(),
          1e-12,
          1e-12));
    }
    return loss.item<double>();
  });
  for (const double loss : losses) {
    CHECK(std::abs(loss - expected.item<double>()) < 1e-14);
    CHECK(loss == losses[0]);
  }
}

TEST_CASE("mean losses accumulate under no_sync", "[ddp]") {
  const auto input = normal({7, 2}, 1);
  const auto target = normal({7, 4}, 2);
  Mlp alone;
  (kSquaredError(alone(input), target).mean() * 2).backward();
  run_ranks(3, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    const auto accumulate = [&] {
      model
          ->mean_loss(
              kSquaredError,
              rows_of(target, context.rank()),
              rows_of(input, context.rank()))
          .backward();
    };
    {
      const auto guard = model->no_sync();
      accumulate();
    }
    accumulate();
    for (size_t i = 0; i < net->parameters().size(); ++i) {
      TORCH_CHECK(torch::allclose(
          net->parameters()[i].grad(),
          alone->parameters()[i].grad(),
          1e-12,
          1e-12));
    }
  });
}

TEST_CASE("mean loss keeps the dtype and works without grad", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    Mlp net(at::kFloat);
    DistributedDataParallel model(net);
    const torch::NoGradGuard no_grad;
    // Sums of 4 zeros and of 8 ones over 1 and 2 rows.
    const auto rank = context.rank();
    const auto loss = model->mean_loss(
        [](const at::Tensor&, const at::Tensor& target) {
          return target.sum();
        },
        torch::full({rank + 1, 4}, static_cast<float>(rank)),
        torch::ones({rank + 1, 2}));
    TORCH_CHECK(loss.scalar_type() == at::kFloat);
    TORCH_CHECK(loss.item<float>() == static_cast<float>(8.0 / 3.0));
  });
}

} // namespace
} // namespace tandem::test
