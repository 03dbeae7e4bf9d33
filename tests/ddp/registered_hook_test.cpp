// Communication hooks as users have them: registered on a wrapper.
#include "support.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/ddp/comm_hooks.h>

#include "flags.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using MakeHook = std::function<std::shared_ptr<comm::CommHook>()>;

/// p(40,20) times the input to the power of one plus the rank.
struct PowerImpl : torch::nn::Module {
  PowerImpl() {
    fill(*this, 4);
  }
  at::Tensor forward(const at::Tensor& input, int64_t rank) {
    return p * input.pow(1 + rank);
  }
  at::Tensor p = register_parameter("p", torch::ones({40, 20}));
};
TORCH_MODULE(Power);

/// Gradients of three steps with and without a hook, on each rank.
void expect_like_mean(
    const Options& options,
    const MakeHook& make_hook,
    double relative,
    double absolute) {
  for (const int64_t world : {2, 3}) {
    run_ranks(world, [&](RankContext& context) {
      Power plain_net;
      Power net;
      DistributedDataParallel plain(plain_net, options);
      DistributedDataParallel model(net, options);
      model->register_comm_hook(make_hook());
      const auto input = normal({40, 20}, 8, at::kFloat).abs();
      for (int64_t step = 0; step < 3; ++step) {
        plain->zero_grad();
        model->zero_grad();
        plain(input, context.rank()).sum().backward();
        model(input, context.rank()).sum().backward();
        TORCH_CHECK(net->p.grad().scalar_type() == at::kFloat);
        TORCH_CHECK(
            torch::allclose(
                net->p.grad(),
                plain_net->p.grad(),
                relative,
                absolute),
            (net->p.grad() - plain_net->p.grad()).abs().max());
      }
    });
  }
}

TEST_CASE("all-reduce hook equals no hook", "[ddp][hooks][HK-01]") {
  for (const auto& options : all_flags()) {
    expect_like_mean(options, ddp::all_reduce_hook, 1e-5, 1e-6);
  }
}

TEST_CASE("registered fp16 hook is close to none", "[ddp][hooks][HK-02]") {
  expect_like_mean(
      {},
      [] { return ddp::fp16_compress_hook(); },
      2e-3,
      1e-4);
}

TEST_CASE("registered bf16 hook is close to none", "[ddp][hooks][HK-03]") {
  expect_like_mean(
      {},
      [] { return ddp::bf16_compress_hook(); },
      2e-2,
      1e-3);
}

TEST_CASE("fp16 goes around PowerSGD's start", "[ddp][hooks][HK-14]") {
  expect_like_mean(
      {},
      [] { return ddp::fp16_compress_hook(ddp::power_sgd_hook()); },
      2e-3,
      1e-4);
}

/// Gradients of one step of a layer with weight and bias, with a function.
std::vector<at::Tensor> step_with(
    const RankContext& context,
    const comm::FunctionHook::Function& function,
    const Options& options = {}) {
  torch::nn::Linear net(3, 2);
  DistributedDataParallel model(net, options);
  model->register_comm_hook(function);
  model(torch::full({1, 3}, 0.25 * (context.rank() + 1.0))).sum().backward();
  return grads_of(*net);
}

TEST_CASE("a future's tensor becomes the gradients", "[ddp][hooks][HK-04]") {
  for (const bool as_view : {true, false}) {
    const auto results = run_ranks(2, [&](RankContext& context) {
      return step_with(
          context,
          [](comm::GradBucket& bucket) {
            return comm::then(
                comm::ready_future(torch::ones_like(bucket.buffer())),
                [](const at::Tensor& ones) { return ones + 1; });
          },
          Options().gradient_as_bucket_view(as_view));
    });
    for (const auto& gradients : results) {
      for (const auto& gradient : gradients) {
        CHECK(gradient.eq(2).all().item<bool>());
      }
    }
  }
}

TEST_CASE("a registered function may chain", "[ddp][hooks][HK-05]") {
  // Of rank r, gradients of 0.25 (r + 1): their mean is 0.375.
  const auto results = run_ranks(2, [](RankContext& context) {
    return step_with(context, [&](comm::GradBucket& bucket) {
      const auto mean =
          comm::all_reduce_future(*context.group(), bucket.buffer());
      const auto tenfold =
          comm::then(mean, [](const at::Tensor& sum) { return sum * 10; });
      return comm::then(tenfold, [](const at::Tensor& sum) { return sum / 2; });
    });
  });
  for (const auto& gradients : results) {
    CHECK(gradients[0].eq(1.875).all().item<bool>());
  }
}

TEST_CASE("no-op hook leaves each rank its own", "[ddp][hooks][HK-07]") {
  run_ranks(2, [](RankContext& context) {
    Scale net(at::kDouble);
    DistributedDataParallel model(net);
    model->register_comm_hook(ddp::noop_hook());
    const auto before = model->counters().bytes_moved;
    model(net->input(static_cast<double>(context.rank()))).sum().backward();
    TORCH_CHECK(
        value_of(net->weight.grad()) == static_cast<double>(context.rank()));
    TORCH_CHECK(model->counters().bytes_moved == before);
    auto mean = net->weight.grad().clone();
    context.group()->all_reduce(mean, comm::ReduceOp::kMean);
    TORCH_CHECK(value_of(mean) == 0.5);
  });
}

TEST_CASE("buckets say what they are", "[ddp][hooks][HK-08]") {
  constexpr int64_t num_layers = 11;
  run_ranks(2, [](RankContext& context) {
    torch::nn::Sequential net;
    for (int64_t i = 0; i < num_layers; ++i) {
      net->push_back(torch::nn::Linear(4, 4));
    }
    DistributedDataParallel model(
        net,
        Options().first_bucket_bytes(1).bucket_cap_bytes(100));
    struct Seen {
      size_t index;
      bool is_last;
      std::vector<std::string> names;
    };
    std::vector<Seen> seen;
    model->register_comm_hook([&](comm::GradBucket& bucket) {
      seen.push_back({bucket.index(), bucket.is_last(), {}});
      for (const auto& parameter : bucket.parameters()) {
        seen.back().names.push_back(parameter.name);
      }
      return comm::all_reduce_future(*context.group(), bucket.buffer());
    });
    for (int64_t step = 0; step < 2; ++step) {
      seen.clear();
      model(torch::ones({1, 4})).sum().backward();
      TORCH_CHECK(seen.size() > 2, seen.size());
      const auto expected = model->logging_data().bucket_params;
      TORCH_CHECK(seen.size() == expected.size());
      for (size_t i = 0; i < seen.size(); ++i) {
        TORCH_CHECK(seen[i].index == i);
        TORCH_CHECK(seen[i].is_last == (i + 1 == seen.size()));
        TORCH_CHECK(seen[i].names == expected[i]);
      }
    }
  });
}

/// Errors of two ranks that misuse a wrapper of one layer.
template <typename Body>
void expect_refused(Body body, const std::vector<std::string>& parts) {
  const auto errors = try_ranks(2, [&](RankContext& context) {
    Scale net;
    DistributedDataParallel model(net);
    body(model, context);
  });
  for (const auto& error : errors) {
    const auto text = text_of(error);
    CHECK((is<ConfigError>(error) || is<ShapeError>(error)));
    for (const auto& part : parts) {
      CAPTURE(text);
      CHECK(contains(text, part));
    }
  }
}

using ScaleModel = DistributedDataParallel<ScaleImpl>;

TEST_CASE("misuse of hooks is refused by name", "[ddp][hooks][HK-09]") {
  expect_refused(
      [](ScaleModel& model, RankContext&) {
        model->register_comm_hook(ddp::all_reduce_hook());
        model->register_comm_hook(ddp::noop_hook());
      },
      {"register_comm_hook", "once", "'noop'", "'allreduce'"});
  expect_refused(
      [](ScaleModel& model, RankContext&) {
        model->register_comm_hook(nullptr, "mine");
      },
      {"'mine'", "empty"});
  expect_refused(
      [](ScaleModel& model, RankContext&) {
        model(torch::ones({1})).sum().backward();
        model->register_comm_hook(ddp::all_reduce_hook());
      },
      {"register_comm_hook", "before the first backward", "'allreduce'"});
  expect_refused(
      [](ScaleModel& model, RankContext&) {
        model->register_comm_hook([](comm::GradBucket&) {
          return comm::ready_future(torch::ones({2}));
        });
        model(torch::ones({1})).sum().backward();
      },
      {"bucket 0", "[1]", "[2]"});
  expect_refused(
      [](ScaleModel& model, RankContext&) {
        model->register_comm_hook([](comm::GradBucket& bucket) {
          return comm::ready_future(bucket.buffer().to(at::kDouble));
        });
        model(torch::ones({1})).sum().backward();
      },
      {"bucket 0", "Float", "Double"});
  expect_refused(
      [](ScaleModel& model, RankContext& context) {
        model->register_comm_hook(
            context.rank() == 0 ? ddp::all_reduce_hook() : ddp::noop_hook());
      },
      {"communication hook", "allreduce", "noop"});
}

TEST_CASE("a hook's error comes out of backward", "[ddp][hooks][HK-09]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Scale net;
    DistributedDataParallel model(net);
    model->register_comm_hook([](comm::GradBucket&) -> comm::TensorFuture {
      throw std::out_of_range("wonderful");
    });
    model(torch::ones({1})).sum().backward();
  });
  for (const auto& error : errors) {
    CHECK(contains(text_of(error), "wonderful"));
  }
}

TEST_CASE("weights of ranks reach a hook's mean", "[ddp][hooks][HK-01]") {
  run_ranks(2, [](RankContext& context) {
    Scale net(at::kDouble);
    DistributedDataParallel model(net);
    model->register_comm_hook(ddp::all_reduce_hook());
    model->set_sample_weight(context.rank() == 0 ? 1. : 3.);
    model(net->input(static_cast<double>(context.rank()))).sum().backward();
    TORCH_CHECK(value_of(net->weight.grad()) == 0.75);
  });
}

/// Parameters of a least-squares fit after many steps.
double loss_after_training(const MakeHook& make_hook) {
  const auto losses = run_ranks(2, [&](RankContext& context) {
    torch::nn::Linear net(8, 8);
    fill(*net, 1);
    DistributedDataParallel model(net);
    model->register_comm_hook(make_hook());
    torch::optim::SGD optimizer(net->parameters(), 0.05);
    const auto truth = normal({8, 8}, 77, at::kFloat);
    double loss = 0;
    for (int64_t step = 0; step < 200; ++step) {
      const auto input = normal({16, 8}, 2 * step + context.rank(), at::kFloat);
      optimizer.zero_grad();
      const auto error = (model(input) - input.matmul(truth)).square().mean();
      error.backward();
      optimizer.step();
      loss = error.item<double>();
    }
    return loss;
  });
  return losses[0];
}

TEST_CASE("compressed training converges by feedback", "[ddp][hooks][HK-13]") {
  const auto plain = loss_after_training(ddp::all_reduce_hook);
  const auto low_rank = loss_after_training([] {
    return ddp::power_sgd_hook(ddp::PowerSGDOptions().start_iteration(2));
  });
  const auto top_k = loss_after_training(
      [] { return ddp::top_k_hook(ddp::TopKOptions().ratio(0.1)); });
  const auto top_k_alone = loss_after_training([] {
    return ddp::top_k_hook(
        ddp::TopKOptions().ratio(0.1).use_error_feedback(false));
  });
  CAPTURE(plain, low_rank, top_k, top_k_alone);
  // Half as far again as without compression; without feedback ten times.
  CHECK(low_rank < 1.5 * plain);
  CHECK(top_k < 1.5 * plain);
  CHECK(top_k_alone > 10 * plain);
}

} // namespace
} // namespace tandem::test
