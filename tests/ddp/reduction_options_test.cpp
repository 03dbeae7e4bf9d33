#include "support.h"

#include <cstdint>
#include <string>
#include <vector>

#include "tandem_catch.h"

namespace tandem::test {
namespace {

/// Each rank's gradient after two steps on inputs of its rank.
std::vector<double> gradients_with(
    const Options& options,
    at::ScalarType dtype,
    const std::function<double(int64_t)>& input_of,
    int64_t world) {
  return run_ranks(world, [&](RankContext& context) {
    Scale net(dtype);
    DistributedDataParallel model(net, options);
    double result = 0;
    for (int64_t step = 0; step < 2; ++step) {
      model->zero_grad();
      model(net->input(input_of(context.rank()))).sum().backward();
      result = value_of(net->weight.grad());
    }
    return result;
  });
}

TEST_CASE("gradients may be summed", "[ddp]") {
  for (const bool as_view : {true, false}) {
    const auto sums = gradients_with(
        Options()
            .reduce_op(comm::ReduceOp::kSum)
            .gradient_as_bucket_view(as_view),
        at::kDouble,
        [](int64_t rank) { return static_cast<double>(rank + 1); },
        3);
    CHECK(sums == std::vector<double>(3, 6.0));
  }
}

TEST_CASE("half gradients do not overflow in the sum", "[ddp][DDP-79]") {
  constexpr double large = 32768;
  for (const bool as_view : {true, false}) {
    const auto means = gradients_with(
        Options().gradient_as_bucket_view(as_view),
        at::kHalf,
        [](int64_t) { return large; },
        2);
    CHECK(means == std::vector<double>(2, large));
  }
}

TEST_CASE("a factor moves the division behind the sum", "[ddp][DDP-79]") {
  // The smallest half number: divided before the sum it becomes zero.
  constexpr double tiny = 6e-8;
  const auto mean_of_tiny = [&](const Options& options) {
    return gradients_with(
        options,
        at::kHalf,
        [](int64_t) { return tiny; },
        3)[0];
  };
  CHECK(mean_of_tiny({}) == 0);
  for (const bool as_view : {true, false}) {
    CHECK(
        mean_of_tiny(
            Options().gradient_predivide_factor(1).gradient_as_bucket_view(
                as_view)) == Approx(tiny).epsilon(0.01));
  }
}

TEST_CASE("half gradients may be summed in float", "[ddp][DDP-79]") {
  // Thirds of a half number, added in half precision, miss it.
  const auto mean = gradients_with(
      Options().reduce_in_float(true),
      at::kHalf,
      [](int64_t rank) { return rank == 0 ? 2049. * 3 : 0.; },
      3);
  // 6147 is not a half number: the input is 6148.
  for (const double value : mean) {
    CHECK(value == Approx(6148. / 3).epsilon(1e-3));
  }
  run_ranks(2, [](RankContext&) {
    Scale net(at::kHalf);
    DistributedDataParallel model(net, Options().reduce_in_float(true));
    model(net->input(1)).sum().backward();
    TORCH_CHECK(net->weight.grad().scalar_type() == at::kHalf);
    TORCH_CHECK(model->logging_data().bucket_sizes[0] == 4);
  });
}

TEST_CASE("delayed parameters go last", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    Towers net;
    // Registration order would send the right one first.
    DistributedDataParallel model(
        net,
        Options()
            .delay_all_reduce_params({"right.*"})
            .first_bucket_bytes(1)
            .bucket_cap_bytes(1));
    for (int64_t step = 0; step < 2; ++step) {
      model->zero_grad();
      const auto [left, right] =
          model(net->left->input(static_cast<double>(context.rank())));
      (left + right).sum().backward();
      TORCH_CHECK(value_of(net->right->weight.grad()) == 0.5);
      TORCH_CHECK(value_of(net->left->weight.grad()) == 0.5);
      const auto names = model->logging_data().bucket_params;
      TORCH_CHECK(names.size() == 2);
      TORCH_CHECK(names[1] == std::vector<std::string>{"right.weight"});
    }
  });
}

TEST_CASE("values at the start may stay each rank's own", "[ddp][DDP-03]") {
  run_ranks(2, [](RankContext& context) {
    Scale net(at::kDouble);
    const auto own = static_cast<double>(context.rank() + 3);
    {
      const torch::NoGradGuard no_grad;
      net->weight.fill_(own);
    }
    DistributedDataParallel model(net, Options().init_sync(false));
    TORCH_CHECK(net->weight.item<double>() == own);
  });
}

TEST_CASE("options that contradict each other are refused", "[ddp]") {
  const std::vector<std::pair<Options, std::string>> wrong{
      {Options().reduce_op(comm::ReduceOp::kMax), "reduce_op"},
      {Options().gradient_predivide_factor(0), "gradient_predivide_factor"},
      {Options().gradient_predivide_factor(2).reduce_op(comm::ReduceOp::kSum),
       "gradient_predivide_factor"},
      {Options().skip_all_reduce_unused_params(true),
       "skip_all_reduce_unused_params"}};
  for (const auto& [options, name] : wrong) {
    const auto errors = try_ranks(2, [&options = options](RankContext&) {
      Scale net;
      DistributedDataParallel model(net, options);
    });
    for (const auto& error : errors) {
      CHECK(is<ConfigError>(error));
      CHECK(contains(text_of(error), "option " + name));
    }
  }
  const auto errors = try_ranks(2, [](RankContext&) {
    Scale net;
    DistributedDataParallel model(
        net,
        Options().reduce_op(comm::ReduceOp::kSum));
    model->set_sample_weight(SampleWeight::kRows);
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "set_sample_weight"));
  }
}

TEST_CASE("options of the reduction are compared", "[ddp][DDP-13]") {
  const std::vector<std::pair<std::string, std::function<Options(bool)>>> all{
      {"find_unused_parameters",
       [](bool on) { return Options().find_unused_parameters(on); }},
      {"static_graph", [](bool on) { return Options().static_graph(on); }},
      {"reduce_in_float",
       [](bool on) { return Options().reduce_in_float(on); }},
      {"init_sync", [](bool on) { return Options().init_sync(on); }},
      {"gradient of 'weight'",
       [](bool on) {
         return on ? Options().delay_all_reduce_params({"weight"}) : Options();
       }},
      {"reduce_op", [](bool on) {
         return on ? Options().reduce_op(comm::ReduceOp::kSum) : Options();
       }}};
  for (const auto& [name, make] : all) {
    const auto errors = try_ranks(2, [&make = make](RankContext& context) {
      Scale net;
      DistributedDataParallel model(net, make(context.rank() == 1));
    });
    for (const auto& error : errors) {
      CAPTURE(name, text_of(error));
      CHECK(is<ConfigError>(error));
      CHECK(contains(text_of(error), name));
    }
  }
}

/// Three layers, used in the order opposite to the one registered.
struct BackwardsImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return first(torch::tanh(second(torch::tanh(third(input)))));
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 2));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(2, 2));
  torch::nn::Linear third = register_module("third", torch::nn::Linear(2, 2));
};
TORCH_MODULE(Backwards);

TEST_CASE("buckets follow the first backward", "[ddp][DDP-61]") {
  const auto make = [] {
    Backwards net;
    net->to(at::kDouble);
    fill(*net, 6);
    return net;
  };
  const auto expected = train_alone(make(), 5);
  for (const bool as_view : {true, false}) {
    for (const bool find_unused : {false, true}) {
      const auto results = run_ranks(2, [&](RankContext& context) {
        auto net = make();
        DistributedDataParallel model(
            net,
            Options()
                .first_bucket_bytes(1)
                .bucket_cap_bytes(1)
                .find_unused_parameters(find_unused)
                .gradient_as_bucket_view(as_view));
        TORCH_CHECK(
            model->logging_data().bucket_params.front() ==
            std::vector<std::string>{"third.bias"});
        auto result = test::train(
            [&](const at::Tensor& input) { return model(input); },
            *net,
            &context,
            5);
        const auto data = model->logging_data();
        TORCH_CHECK(data.has_rebuilt_buckets);
        TORCH_CHECK(data.num_reductions == 5);
        TORCH_CHECK(contains(model->describe(), "In 5 reductions"));
        TORCH_CHECK(contains(model->describe(), "rank 0's first backward"));
        // The last layer that ran is the first to have its gradients.
        TORCH_CHECK(data.bucket_params[0][0].starts_with("first."));
        TORCH_CHECK(data.bucket_params[5][0].starts_with("third."));
        return result;
      });
      for (const auto& result : results) {
        CHECK(torch::allclose(result, expected, 1e-10, 1e-10));
        CHECK(torch::equal(result, results[0]));
      }
    }
  }
}

TEST_CASE("gradients that accumulate outlive new buckets", "[ddp][DDP-61]") {
  run_ranks(2, [](RankContext& context) {
    Backwards net;
    net->to(at::kDouble);
    fill(*net, 6);
    DistributedDataParallel model(net);
    const auto input = normal({3, 2}, 10 + context.rank());
    model(input).sum().backward();
    const auto once = snapshot(grads_of(*net));
    model(input).sum().backward();
    for (size_t i = 0; i < once.size(); ++i) {
      TORCH_CHECK(is_close(grads_of(*net)[i], once[i] * 2));
    }
    TORCH_CHECK(model->logging_data().has_rebuilt_buckets);
  });
}

TEST_CASE("logging data shows what overlaps", "[ddp][DDP-93]") {
  const auto all = run_ranks(2, [](RankContext&) {
    torch::nn::Sequential net;
    for (int64_t i = 0; i < 10; ++i) {
      net->push_back(torch::nn::Linear(512, 512));
    }
    DistributedDataParallel model(net, Options().bucket_cap_bytes(1 << 20));
    for (int64_t step = 0; step < 3; ++step) {
      model(torch::ones({8, 512})).sum().backward();
    }
    return model->logging_data();
  });
  for (const auto& data : all) {
    CHECK(data.num_reductions == 3);
    CHECK(data.bucket_sizes.size() > 5);
    CHECK(data.bucket_launch_times[0] < data.last_gradient_time);
    CHECK(data.forward_time > 0);
    CHECK(data.backward_comm_time >= data.backward_compute_comm_overlap_time);
    CHECK(data.backward_compute_comm_overlap_time > 0);
    CHECK(data.avg_backward_compute_time > 0);
    CHECK(data.bucket_params == all[0].bucket_params);
    CHECK(std::is_sorted(
        data.bucket_launch_times.begin(),
        data.bucket_launch_times.end()));
  }
}

} // namespace
} // namespace tandem::test
