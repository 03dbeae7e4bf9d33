#include "support.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <tandem/comm/join.h>
#include <tandem/core/sync_batch_norm.h>
#include <tandem/ddp/comm_hooks.h>

#include "flags.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using comm::Join;
using comm::JoinOptions;

constexpr double kInput = 50;

/// Gradients of each step of a rank that has `num_steps` inputs.
std::vector<double> gradients_in_join(
    const RankContext& context,
    int64_t num_steps,
    const JoinOptions& join_options) {
  Scale net(at::kDouble);
  DistributedDataParallel model(net);
  std::vector<double> gradients;
  Join join({&*model}, join_options);
  for (int64_t step = 0; step < num_steps; ++step) {
    model->zero_grad();
    model(net->input(kInput)).sum().backward();
    gradients.push_back(net->weight.grad().item<double>());
  }
  join.finish();
  static_cast<void>(context);
  return gradients;
}

TEST_CASE("joined ranks count as zeros in the mean", "[ddp][JN-02]") {
  for (const int64_t world : {2, 3}) {
    const auto gradients = run_ranks(world, [](RankContext& context) {
      return gradients_in_join(context, context.rank() == 0 ? 3 : 5, {});
    });
    CHECK(gradients[0] == std::vector<double>(3, kInput));
    const auto active = static_cast<double>(world - 1);
    const auto last = kInput * active / static_cast<double>(world);
    CHECK(gradients[1].size() == 5);
    CHECK(gradients[1][2] == kInput);
    CHECK(gradients[1][3] == Approx(last).epsilon(1e-12));
    CHECK(gradients[1][4] == Approx(last).epsilon(1e-12));
  }
}

TEST_CASE("the mean may be over the ranks with inputs", "[ddp][JN-03]") {
  for (const int64_t world : {2, 3}) {
    const auto gradients = run_ranks(world, [](RankContext& context) {
      return gradients_in_join(
          context,
          context.rank() == 0 ? 3 : 5,
          JoinOptions().divide_by_initial_world_size(false));
    });
    CHECK(gradients[0] == std::vector<double>(3, kInput));
    for (const double gradient : gradients[1]) {
      CHECK(gradient == Approx(kInput).epsilon(1e-12));
    }
  }
}

/// A layer that only some steps use, with statistics.
struct MixedImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input, bool uses_other) {
    const auto output = norm(first(input));
    return uses_other ? other(output) : output;
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 3));
  torch::nn::BatchNorm1d norm =
      register_module("norm", torch::nn::BatchNorm1d(3));
  torch::nn::Linear other = register_module("other", torch::nn::Linear(3, 3));
};
TORCH_MODULE(Mixed);

struct Matrix {
  Options options;
  int64_t sync_every;
  bool has_hook;
  bool is_weighed;
};

std::vector<Matrix> join_matrix() {
  std::vector<Matrix> matrix;
  for (const auto policy :
       {BufferPolicy::kFirst, BufferPolicy::kMerge, BufferPolicy::kNone}) {
    for (const int64_t sync_every : {1, 2}) {
      for (const bool find_unused : {false, true}) {
        matrix.push_back(
            {Options()
                 .buffer_policy(policy)
                 .find_unused_parameters(find_unused)
                 .skip_all_reduce_unused_params(find_unused && sync_every == 2),
             sync_every,
             policy == BufferPolicy::kMerge,
             policy == BufferPolicy::kNone});
      }
    }
  }
  return matrix;
}

TEST_CASE("models are equal after an uneven end", "[ddp][JN-05]") {
  for (const auto& [options, sync_every, has_hook, is_weighed] :
       join_matrix()) {
    const auto results = run_ranks(3, [&](RankContext& context) {
      Mixed net;
      net->to(at::kDouble);
      fill(*net, 2);
      DistributedDataParallel model(net, options);
      if (has_hook) {
        model->register_comm_hook(ddp::fp16_compress_hook());
      }
      if (is_weighed) {
        model->set_sample_weight(SampleWeight::kRows);
      }
      torch::optim::SGD optimizer(net->parameters(), 0.05);
      Join join({&*model});
      const int64_t num_steps = 2 + 2 * context.rank();
      for (int64_t step = 0; step < num_steps; ++step) {
        std::optional<NoSyncGuard> guard;
        if ((step + 1) % sync_every != 0) {
          guard.emplace(model->no_sync());
        }
        const bool uses_other =
            !options.find_unused_parameters() || step % 3 != 0;
        model(normal({4, 2}, 10 * context.rank() + step), uses_other)
            .square()
            .mean()
            .backward();
        if (!guard) {
          optimizer.step();
          optimizer.zero_grad();
        }
      }
      join.finish();
      std::vector<at::Tensor> all{flat_parameters(*net)};
      for (const auto& buffer : net->buffers()) {
        all.push_back(buffer.reshape({-1}).to(at::kDouble));
      }
      return torch::cat(all);
    });
    CHECK(torch::equal(results[0], results[1]));
    CHECK(torch::equal(results[0], results[2]));
    CHECK(results[0].isfinite().all().item<bool>());
  }
}

TEST_CASE("an uneven end equals training on the sums", "[ddp][JN-09]") {
  // Mean over all ranks times the world size is the sum over those with inputs.
  constexpr int64_t world = 2;
  const auto steps_of = [](int64_t rank) { return 2 * (rank + 1); };
  const auto input_of = [](int64_t rank, int64_t step) {
    return normal({3, 2}, static_cast<uint64_t>(100 * rank + step));
  };
  Mlp alone;
  torch::optim::SGD optimizer_alone(alone->parameters(), 0.05);
  for (int64_t step = 0; step < steps_of(world - 1); ++step) {
    optimizer_alone.zero_grad();
    for (int64_t rank = 0; rank < world; ++rank) {
      if (step < steps_of(rank)) {
        alone(input_of(rank, step)).square().mean().backward();
      }
    }
    optimizer_alone.step();
  }
  const auto results = run_ranks(world, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    torch::optim::SGD optimizer(net->parameters(), 0.05 * world);
    const auto guard = model->uneven_inputs();
    for (int64_t step = 0; step < steps_of(context.rank()); ++step) {
      optimizer.zero_grad();
      model(input_of(context.rank(), step)).square().mean().backward();
      optimizer.step();
    }
    guard->finish();
    return flat_parameters(*net);
  });
  for (const auto& result : results) {
    CHECK(torch::allclose(result, flat_parameters(*alone), 1e-10, 1e-10));
  }
}

/// Counts in its way what the wrapper does in its own.
class CountedJoinable final : public comm::Joinable {
 public:
  explicit CountedJoinable(std::shared_ptr<comm::ProcessGroup> group)
      : group_(std::move(group)) {}

  int64_t step() {
    Join::notify(*this);
    return sum(1);
  }
  std::unique_ptr<comm::JoinHook> join_hook(const JoinOptions&) override {
    class Hook final : public comm::JoinHook {
     public:
      explicit Hook(CountedJoinable& owner) : owner_(owner) {}
      void main_hook() override {
        owner_.sum(0);
      }

     private:
      CountedJoinable& owner_;
    };
    return std::make_unique<Hook>(*this);
  }
  std::shared_ptr<comm::ProcessGroup> join_process_group() const override {
    return group_;
  }

 private:
  int64_t sum(int64_t own) {
    auto number = torch::full({1}, own, at::kLong);
    group_->all_reduce(number);
    return number.item<int64_t>();
  }

  std::shared_ptr<comm::ProcessGroup> group_;
};

TEST_CASE("a wrapper joins with others in their order", "[ddp][JN-08]") {
  const auto totals = run_ranks(2, [](RankContext& context) {
    Scale net(at::kDouble);
    DistributedDataParallel model(net);
    CountedJoinable second(context.group());
    CountedJoinable third(context.group());
    Join join({&*model, &second, &third});
    int64_t total = 0;
    for (int64_t step = 0; step < 2 + context.rank(); ++step) {
      model->zero_grad();
      model(net->input(1)).sum().backward();
      total += second.step() + third.step();
    }
    join.finish();
    return total;
  });
  CHECK(totals[0] == 2 * (2 + 2));
  CHECK(totals[1] == 2 * (2 + 2 + 1));
}

TEST_CASE("SyncBatchNorm and mean_loss refuse a join", "[ddp][JN-07]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    SyncBatchNorm net(2);
    DistributedDataParallel model(net);
    Join join({&*model});
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "SyncBatchNorm"));
  }
  const auto others = try_ranks(2, [](RankContext&) {
    torch::nn::Linear net(2, 2);
    DistributedDataParallel model(net);
    Join join({&*model});
    model->mean_loss(
        [](const at::Tensor& output, const at::Tensor&) {
          return output.sum(1);
        },
        torch::ones({3}),
        torch::ones({3, 2}));
  });
  for (const auto& error : others) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "mean_loss"));
  }
}

} // namespace
} // namespace tandem::test
