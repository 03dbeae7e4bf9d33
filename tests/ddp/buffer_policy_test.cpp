#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

constexpr int64_t kChannels = 3;
const std::vector<int64_t> kRowsToMerge{3, 2, 4};

/// A norm, and buffers of other kinds that forward changes.
struct StatefulImpl : torch::nn::Module {
  StatefulImpl()
      : norm(register_module("norm", torch::nn::BatchNorm1d(kChannels))),
        last(register_buffer("last", torch::zeros({}, at::kDouble))) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) {
    last.copy_(input.detach().max());
    return norm(input);
  }
  torch::nn::BatchNorm1d norm;
  at::Tensor last;
};
TORCH_MODULE(Stateful);

at::Tensor batch_of(uint64_t step) {
  return normal({9, kChannels}, step) * 2 + 3;
}

at::Tensor merged_rows(uint64_t step, int64_t rank) {
  return batch_of(step).split_with_sizes(
      kRowsToMerge)[static_cast<size_t>(rank)];
}

Options merging() {
  return Options().buffer_policy(BufferPolicy::kMerge);
}

TEST_CASE("merged statistics are those of all ranks' rows", "[ddp][BUF-01]") {
  torch::nn::BatchNorm1d whole(kChannels);
  whole->to(at::kDouble);
  auto variance = torch::ones({kChannels}, at::kDouble);
  for (uint64_t step = 0; step < 3; ++step) {
    whole(batch_of(step));
    // The parts' unbiased variances and the variance of their means.
    auto batch_variance = torch::zeros({kChannels}, at::kDouble);
    for (int64_t rank = 0; rank < 3; ++rank) {
      const auto rows = merged_rows(step, rank);
      const auto from_mean = rows.mean(0) - batch_of(step).mean(0);
      batch_variance += (rows.var(0, /*unbiased=*/true) + from_mean.square()) *
          (static_cast<double>(rows.size(0)) / 9.0);
    }
    variance = variance * 0.9 + batch_variance * 0.1;
  }
  run_ranks(3, [&](RankContext& context) {
    Stateful net;
    DistributedDataParallel model(net, merging());
    for (uint64_t step = 0; step < 3; ++step) {
      model(merged_rows(step, context.rank())).sum().backward();
    }
    TORCH_CHECK(is_close(net->norm->running_mean, whole->running_mean, 1e-12));
    TORCH_CHECK(is_close(net->norm->running_var, variance, 1e-12));
    TORCH_CHECK(net->norm->num_batches_tracked.item<int64_t>() == 3);
    // What is no statistic is rank 0's, at the next forward.
    TORCH_CHECK(net->last.equal(merged_rows(2, context.rank()).max()));
    model->eval();
    model(merged_rows(3, 0)).sum().backward();
    TORCH_CHECK(is_close(net->norm->running_mean, whole->running_mean, 1e-12));
  });
}

TEST_CASE("merged statistics have the same bits on all ranks", "[ddp]") {
  const auto results = run_ranks(3, [](RankContext& context) {
    Stateful net;
    net->to(at::kFloat);
    DistributedDataParallel model(net, merging());
    model(merged_rows(1, context.rank()).to(at::kFloat)).sum().backward();
    return snapshot(net->norm->buffers());
  });
  for (const auto& buffers : results) {
    CHECK(are_close(buffers, results[0], 0));
  }
}

TEST_CASE("a forward merges in one transfer", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    const auto transfers_with = [&](const Options& options) {
      Stateful net;
      DistributedDataParallel model(net, options);
      const auto before = model->counters().collectives;
      model(merged_rows(1, context.rank()));
      return model->counters().collectives - before;
    };
    TORCH_CHECK(transfers_with(merging()) == transfers_with(Options()) + 1);
  });
}

TEST_CASE("statistics stay local under no_sync and without grad", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    Stateful net;
    DistributedDataParallel model(net, merging());
    const auto before = model->counters().collectives;
    {
      const auto guard = model->no_sync();
      model(merged_rows(1, context.rank())).sum().backward();
    }
    {
      const torch::NoGradGuard no_grad;
      model(merged_rows(2, context.rank()));
    }
    TORCH_CHECK(model->counters().collectives == before);
    torch::nn::BatchNorm1d own(kChannels);
    own->to(at::kDouble);
    own(merged_rows(1, context.rank()));
    own(merged_rows(2, context.rank()));
    TORCH_CHECK(are_close(net->norm->buffers(), own->buffers(), 0));
  });
}

TEST_CASE("a synchronised forward merges into rank 0's statistics", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    Stateful net;
    DistributedDataParallel model(net, merging());
    {
      const auto guard = model->no_sync();
      model(merged_rows(1, context.rank())).sum().backward();
    }
    model(merged_rows(2, context.rank())).sum().backward();
    torch::nn::BatchNorm1d expected(kChannels);
    expected->to(at::kDouble);
    expected(merged_rows(1, 0));
    expected(torch::cat({merged_rows(2, 0), merged_rows(2, 1)}));
    TORCH_CHECK(
        is_close(net->norm->running_mean, expected->running_mean, 1e-12));
  });
}

} // namespace
} // namespace tandem::test
