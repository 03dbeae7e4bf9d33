// SyncBatchNorm over ranks: what BatchNorm computes on the whole batch. (The
// oracle is the bare module: Python's SyncBatchNorm takes no CPU tensors.)
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <tandem/comm/backend.h>
#include <tandem/core/statistics_group.h>
#include <tandem/core/sync_batch_norm.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using torch::nn::BatchNormOptions;

constexpr int64_t kNormChannels = 3;

/// Two norms with something between them, for any number of dimensions.
template <typename Norm>
struct NormStackImpl : torch::nn::Module {
  explicit NormStackImpl(const BatchNormOptions& options)
      : first(register_module("first", Norm(options))),
        mix(register_module(
            "mix",
            torch::nn::Linear(kNormChannels, kNormChannels))),
        second(register_module("second", Norm(options))) {}
  /// [N, C, ...]
  at::Tensor forward(const at::Tensor& input) {
    const auto hidden = torch::tanh(first->forward(input)).movedim(1, -1);
    return second->forward(mix(hidden).movedim(-1, 1));
  }
  Norm first;
  torch::nn::Linear mix;
  Norm second;
};

using SyncStackImpl = NormStackImpl<SyncBatchNorm>;

template <typename Norm>
auto make_stack(const BatchNormOptions& options, at::ScalarType dtype) {
  auto net = std::make_shared<NormStackImpl<Norm>>(options);
  net->to(dtype);
  fill(*net, 5);
  return net;
}

/// How many of the rows each rank has.
using Rows = std::vector<int64_t>;

at::Tensor part(const at::Tensor& batch, const Rows& rows, int64_t rank) {
  return batch.split_with_sizes(rows)[rank];
}

struct NormCase {
  BatchNormOptions options{kNormChannels};
  Rows rows{2, 2};
  std::vector<int64_t> other_dims{};
  at::ScalarType dtype = at::kDouble;
  double tolerance = kDoubleTolerance;
  at::MemoryFormat layout = at::MemoryFormat::Contiguous;
};

at::Tensor input_of(const NormCase& test, uint64_t seed) {
  std::vector<int64_t> sizes{0, kNormChannels};
  for (const auto rows : test.rows) {
    sizes[0] += rows;
  }
  sizes.insert(sizes.end(), test.other_dims.begin(), test.other_dims.end());
  return normal(sizes, seed, test.dtype).contiguous(test.layout);
}

/// The state after each of 5 steps and the output of an evaluation.
template <typename Net, typename Loss>
std::vector<at::Tensor> train(
    Net& net,
    const NormCase& test,
    const Loss& loss) {
  torch::optim::SGD optimizer(
      net.parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<at::Tensor> results;
  for (uint64_t step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    loss(input_of(test, step), input_of(test, step + 10)).backward();
    optimizer.step();
    for (const auto& tensors :
         {grads_of(net), net.parameters(), net.buffers()}) {
      const auto copies = snapshot(tensors);
      results.insert(results.end(), copies.begin(), copies.end());
    }
  }
  net.eval();
  results.push_back(net.forward(input_of(test, 20)).detach());
  return results;
}

template <typename Norm>
std::vector<at::Tensor> train_plain(const NormCase& test) {
  const auto net = make_stack<Norm>(test.options, test.dtype);
  return train(
      *net,
      test,
      [&](const at::Tensor& input, const at::Tensor& target) {
        return (net->forward(input) - target).square().mean();
      });
}

std::vector<at::Tensor> train_rank(
    const NormCase& test,
    const RankContext& context,
    SampleWeight weight) {
  const auto net = make_stack<SyncBatchNorm>(test.options, test.dtype);
  DistributedDataParallel model(net);
  model->set_sample_weight(weight);
  return train(
      *net,
      test,
      [&](const at::Tensor& input, const at::Tensor& target) {
        const auto share = part(input, test.rows, context.rank());
        const auto wanted = part(target, test.rows, context.rank());
        // The sum over no rows is 0, the mean is not a number.
        const auto squares = (model(share) - wanted).square().sum();
        return squares / std::max<int64_t>(wanted.numel(), 1);
      });
}

void check_same(
    const std::vector<at::Tensor>& actual,
    const std::vector<at::Tensor>& expected,
    double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("tensor " << i << "\n" << actual[i] << "\n" << expected[i]);
    CHECK(is_close(actual[i], expected[i], tolerance));
  }
}

template <typename Norm = torch::nn::BatchNorm1d>
void check_equals_whole_batch(
    const NormCase& test,
    SampleWeight weight = SampleWeight::kEqual) {
  const auto expected = train_plain<Norm>(test);
  const auto actual = run_ranks(
      static_cast<int64_t>(test.rows.size()),
      [&](RankContext& context) { return train_rank(test, context, weight); });
  for (const auto& of_rank : actual) {
    check_same(of_rank, expected, test.tolerance);
  }
}

TEST_CASE(
    "SyncBatchNorm over ranks is BatchNorm on the whole batch",
    "[ddp][SBN-01]") {
  check_equals_whole_batch({});
  check_equals_whole_batch({.rows = {2, 2, 2}, .other_dims = {4}});
  check_equals_whole_batch(
      {.options = BatchNormOptions(kNormChannels).affine(false)});
  check_equals_whole_batch<torch::nn::BatchNorm2d>({.other_dims = {3, 2}});
  check_equals_whole_batch<torch::nn::BatchNorm3d>({.other_dims = {2, 2, 3}});
}

TEST_CASE("ranks with uneven rows are one batch", "[ddp][SBN-02]") {
  check_equals_whole_batch({.rows = {2, 3}}, SampleWeight::kRows);
  check_equals_whole_batch({.rows = {2, 3, 4}}, SampleWeight::kRows);
  check_equals_whole_batch(
      {.rows = {5, 1, 2}, .other_dims = {2}},
      SampleWeight::kRows);
}

TEST_CASE("a rank without rows changes nothing", "[ddp][SBN-02]") {
  check_equals_whole_batch({.rows = {4, 0}}, SampleWeight::kRows);
  check_equals_whole_batch({.rows = {0, 3, 2}}, SampleWeight::kRows);
}

TEST_CASE("one row per rank is enough", "[ddp][SBN-03]") {
  check_equals_whole_batch({.rows = {1, 1}});
  check_equals_whole_batch({.rows = {1, 1, 1}});
}

TEST_CASE("SyncBatchNorm over ranks honours its options", "[ddp][SBN-07]") {
  check_equals_whole_batch(
      {.options = BatchNormOptions(kNormChannels).momentum(std::nullopt)});
  check_equals_whole_batch(
      {.options = BatchNormOptions(kNormChannels).momentum(0.7).eps(0.1)});
}

TEST_CASE("channels_last input is as any other", "[ddp][SBN-07]") {
  check_equals_whole_batch<torch::nn::BatchNorm2d>(
      {.other_dims = {3, 2}, .layout = at::MemoryFormat::ChannelsLast});
}

TEST_CASE("half precision keeps its type over ranks", "[ddp][SBN-07]") {
  const auto input = normal({6, kNormChannels, 4}, 2, at::kHalf);
  const auto weight = normal({6, kNormChannels, 4}, 3, at::kHalf);
  torch::nn::BatchNorm1d plain(kNormChannels);
  plain->to(at::kHalf);
  plain(input).mul(weight).sum().div(2).backward();
  const auto results = run_ranks(2, [&](RankContext& context) {
    SyncBatchNorm norm(kNormChannels);
    norm->to(at::kHalf);
    DistributedDataParallel model(norm);
    model(share(input, context)).mul(share(weight, context)).sum().backward();
    return std::vector<at::Tensor>{
        norm->weight.grad(),
        norm->bias.grad(),
        norm->running_mean,
        norm->running_var};
  });
  // 11 bits of mantissa; sums of 12 numbers.
  const double tolerance = 4e-3;
  for (const auto& result : results) {
    check_same(
        result,
        {plain->weight.grad(),
         plain->bias.grad(),
         plain->running_mean,
         plain->running_var},
        tolerance);
  }
}

TEST_CASE("gradient penalty over ranks is the whole batch's", "[ddp][SBN-01]") {
  // Ranks are weighed, so that both kinds of sums have derivatives.
  const NormCase test{.rows = {2, 3}};
  const auto penalty = [](auto& module, at::Tensor input) {
    input.requires_grad_();
    const auto output = module.forward(input);
    const auto first = torch::autograd::grad(
        {output.pow(3).sum()},
        {input},
        /*grad_outputs=*/{},
        /*retain_graph=*/true,
        /*create_graph=*/true)[0];
    return output.sin().sum() + first.pow(2).sum();
  };
  const auto plain =
      make_stack<torch::nn::BatchNorm1d>(test.options, at::kDouble);
  auto whole = input_of(test, 3);
  (penalty(*plain, whole) / 5).backward();
  const auto results = run_ranks(2, [&](RankContext& context) {
    const auto net = make_stack<SyncBatchNorm>(test.options, at::kDouble);
    DistributedDataParallel model(net);
    // Losses are sums: ranks count alike.
    penalty(*model, part(input_of(test, 3), test.rows, context.rank()))
        .mul(2.0 / 5)
        .backward();
    return snapshot(grads_of(*net));
  });
  for (const auto& result : results) {
    check_same(result, snapshot(grads_of(*plain)), kDoubleTolerance);
  }
}

TEST_CASE("parts under no_sync meet as the whole batch's", "[ddp][SBN-02]") {
  const NormCase test{.rows = {2, 3}};
  const auto plain =
      make_stack<torch::nn::BatchNorm1d>(test.options, at::kDouble);
  for (const uint64_t seed : {1, 2}) {
    (plain->forward(input_of(test, seed)).pow(3).mean() / 2).backward();
  }
  const auto results = run_ranks(2, [&](RankContext& context) {
    const auto net = make_stack<SyncBatchNorm>(test.options, at::kDouble);
    DistributedDataParallel model(net);
    model->set_sample_weight(SampleWeight::kRows);
    const auto step = [&](uint64_t seed) {
      const auto input = part(input_of(test, seed), test.rows, context.rank());
      (model(input).pow(3).mean() / 2).backward();
    };
    {
      const auto guard = model->no_sync();
      step(1);
    }
    step(2);
    return snapshot(grads_of(*net));
  });
  for (const auto& result : results) {
    check_same(result, snapshot(grads_of(*plain)), kDoubleTolerance);
  }
}

TEST_CASE("mean_loss through SyncBatchNorm is exact", "[ddp][SBN-02]") {
  const NormCase test{.rows = {2, 3, 0}};
  const auto plain =
      make_stack<torch::nn::BatchNorm1d>(test.options, at::kDouble);
  plain->forward(input_of(test, 1)).pow(3).sum(1).mean().backward();
  const auto results = run_ranks(3, [&](RankContext& context) {
    const auto net = make_stack<SyncBatchNorm>(test.options, at::kDouble);
    DistributedDataParallel model(net);
    const auto input = part(input_of(test, 1), test.rows, context.rank());
    model
        ->mean_loss(
            [](const at::Tensor& output, const at::Tensor&) {
              return output.pow(3).sum(1);
            },
            input,
            input)
        .backward();
    return snapshot(grads_of(*net));
  });
  for (const auto& result : results) {
    check_same(result, snapshot(grads_of(*plain)), kDoubleTolerance);
  }
}

TEST_CASE("eval needs no other rank", "[ddp][SBN-06]") {
  for (const bool tracks : {true, false}) {
    run_ranks(2, [&](RankContext& context) {
      const auto net = make_stack<SyncBatchNorm>(
          BatchNormOptions(kNormChannels).track_running_stats(tracks),
          at::kDouble);
      DistributedDataParallel model(net, Options().broadcast_buffers(false));
      model(normal({4, kNormChannels}, context.rank())).sum().backward();
      const auto before = model->counters().collectives;
      model->eval();
      for (int i = 0; context.rank() == 0 && i < 6; ++i) {
        const torch::NoGradGuard no_grad;
        model(normal({4, kNormChannels}, i));
      }
      TORCH_CHECK(model->counters().collectives == before);
      model->train();
      model(normal({4, kNormChannels}, context.rank())).sum().backward();
    });
  }
}

TEST_CASE("training without grad meets", "[ddp][SBN-06]") {
  const auto input = normal({6, kNormChannels}, 1);
  torch::nn::BatchNorm1d plain(kNormChannels);
  plain->to(at::kDouble);
  const auto expected = plain(input);
  run_ranks(2, [&](RankContext& context) {
    SyncBatchNorm norm(kNormChannels);
    norm->to(at::kDouble);
    DistributedDataParallel model(norm);
    const torch::NoGradGuard no_grad;
    TORCH_CHECK(is_close(
        model(share(input, context)),
        share(expected, context).detach()));
  });
}

TEST_CASE("statistics stay within a sub-group", "[ddp][SBN-07]") {
  // Two groups of two over one store, each with data of its own.
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto results = run_ranks(4, [&](RankContext& context) {
    const int64_t color = context.rank() / 2;
    const int64_t rank = context.rank() % 2;
    const auto group = comm::connect_group(
        {.store = c10::make_intrusive<c10d::PrefixStore>(
             std::to_string(color),
             store),
         .rank = rank,
         .size = 2});
    SyncBatchNorm norm(kNormChannels);
    norm->to(at::kDouble);
    DistributedDataParallel model(norm, Options().process_group(group));
    model(normal({4, kNormChannels}, color).chunk(2)[rank]).sum().backward();
    return norm->running_mean.clone();
  });
  for (int64_t rank = 0; rank < 4; ++rank) {
    torch::nn::BatchNorm1d plain(kNormChannels);
    plain->to(at::kDouble);
    plain(normal({4, kNormChannels}, rank / 2));
    CHECK(is_close(results[rank], plain->running_mean));
  }
}

TEST_CASE("a layer that only some ranks call is named", "[ddp][SBN-01]") {
  const auto errors = try_ranks(3, [](RankContext& context) {
    const auto net =
        make_stack<SyncBatchNorm>(BatchNormOptions(kNormChannels), at::kDouble);
    DistributedDataParallel model(net);
    net->first->train(context.rank() != 1);
    model(normal({4, kNormChannels}, 1));
  });
  for (const auto& error : errors) {
    CHECK(contains(text_of(error), "rank 0 at the layer 'first'"));
    CHECK(contains(text_of(error), "rank 1 at the layer 'second'"));
  }
}

TEST_CASE("numbers of SyncBatchNorm layers are compared", "[ddp][SBN-07]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    if (context.rank() == 0) {
      DistributedDataParallel model(SyncBatchNorm{kNormChannels});
    } else {
      DistributedDataParallel model(torch::nn::BatchNorm1d{kNormChannels});
    }
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "number of SyncBatchNorm layers"));
  }
}

TEST_CASE("a layer recomputed in backward meets again", "[ddp][SBN-07]") {
  const auto input = normal({4, kNormChannels}, 1);
  const auto results = run_ranks(2, [&](RankContext& context) {
    struct Recomputed : torch::nn::Module {
      Recomputed()
          : norm(register_module("norm", SyncBatchNorm(kNormChannels))) {}
      at::Tensor forward(const at::Tensor& input) {
        group = StatisticsScope::current()->for_recomputation();
        return norm(input);
      }
      SyncBatchNorm norm;
      std::shared_ptr<StatisticsGroup> group;
    };
    const auto net = std::make_shared<Recomputed>();
    net->to(at::kDouble);
    DistributedDataParallel model(net);
    const auto output = model(share(input, context));
    const auto mean = net->norm->running_mean.clone();
    const StatisticsScope scope(net->group.get());
    const auto again = net->norm(share(input, context));
    return is_equal(again, output) && is_equal(net->norm->running_mean, mean);
  });
  CHECK(results == std::vector<bool>(2, true));
}

} // namespace
} // namespace tandem::test
