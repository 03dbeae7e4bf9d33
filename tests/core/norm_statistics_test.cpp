#include <cmath>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/norm_statistics.h>

#include "modules.h"
#include "tandem_catch.h"
#include "tensors.h"

using namespace tandem::test;
using tandem::NormStatistics;
using torch::nn::BatchNormOptions;

namespace {

constexpr int64_t kChannels = 3;

/// Runs each part's rows through a module of its own, made by `make`, and
/// merges the statistics. Returns the modules.
template <typename Make, typename Forward>
auto run_parts(
    const Make& make,
    const std::vector<at::Tensor>& parts,
    const Forward& forward) {
  std::vector<decltype(make())> modules;
  std::vector<NormStatistics> statistics;
  at::Tensor sum;
  for (const auto& part : parts) {
    modules.push_back(make());
    auto& own = statistics.emplace_back(*modules.back());
    own.begin();
    forward(*modules.back(), part);
    const auto contribution = own.contribution(part.size(0));
    sum = sum.defined() ? sum + contribution : contribution;
  }
  for (const auto& own : statistics) {
    own.adopt(sum);
  }
  return modules;
}

const auto kCallOnce = [](auto& module, const at::Tensor& input) {
  module.forward(input);
};

/// Mean of the parts' unbiased variances and variance of their means, weighted
/// by rows. [C]
at::Tensor total_variance(const std::vector<at::Tensor>& parts) {
  at::Tensor mean_of_variances;
  std::vector<at::Tensor> all;
  int64_t rows = 0;
  for (const auto& part : parts) {
    const auto values = part.transpose(0, 1).flatten(1); // [C, n]
    const auto weighted = values.var(1, /*unbiased=*/true) * part.size(0);
    const auto moved = values.mean(1, true).expand({-1, part.size(0)});
    mean_of_variances =
        mean_of_variances.defined() ? mean_of_variances + weighted : weighted;
    all.push_back(moved);
    rows += part.size(0);
  }
  const auto variance_of_means = at::cat(all, 1).var(1, /*unbiased=*/false);
  return mean_of_variances / rows + variance_of_means;
}

/// A batch norm that has already seen a batch.
template <typename Norm>
std::shared_ptr<Norm> make_seasoned(
    const std::vector<int64_t>& sizes,
    const BatchNormOptions& options) {
  auto norm = make_net<Norm>(1, options);
  norm->forward(normal(sizes, 77) * 2 + 1);
  return norm;
}

template <typename Norm>
void check_merge(
    const std::vector<int64_t>& sizes,
    const std::vector<int64_t>& rows,
    const BatchNormOptions& options) {
  const auto batch = normal(sizes, 3) + 5;
  const auto parts = batch.split_with_sizes(rows);
  const auto make = [&] { return make_seasoned<Norm>(sizes, options); };
  const auto before = make();
  const auto whole = make();
  whole->forward(batch);
  // The second batch of a cumulative average counts half.
  const double factor = options.momentum().value_or(0.5);
  const auto variance =
      before->running_var * (1 - factor) + total_variance(parts) * factor;
  for (const auto& norm : run_parts(make, parts, kCallOnce)) {
    CHECK(is_close(norm->running_mean, whole->running_mean, 1e-13));
    CHECK(is_close(norm->running_var, variance, 1e-12));
    CHECK(is_equal(norm->num_batches_tracked, whole->num_batches_tracked));
  }
}

/// One norm, called as often as it is told.
struct RepeatedNormImpl : torch::nn::Module {
  explicit RepeatedNormImpl(const BatchNormOptions& options)
      : norm(register_module("norm", torch::nn::BatchNorm1d(options))) {}
  void forward(const at::Tensor& input) {
    for (int call = 0; call < num_calls; ++call) {
      norm(input);
    }
  }
  torch::nn::BatchNorm1d norm;
  int num_calls = 2;
};

} // namespace

TEST_CASE("merged statistics are the law of total variance", "[core]") {
  const BatchNormOptions options(kChannels);
  using namespace torch::nn;
  check_merge<BatchNorm1dImpl>({9, kChannels}, {4, 5}, options);
  check_merge<BatchNorm1dImpl>({9, kChannels, 4}, {1, 6, 2}, options);
  check_merge<BatchNorm2dImpl>({5, kChannels, 2, 3}, {4, 1}, options);
  check_merge<BatchNorm3dImpl>({5, kChannels, 2, 2, 2}, {2, 3}, options);
}

TEST_CASE("statistics merge under every momentum", "[core]") {
  using torch::nn::BatchNorm1dImpl;
  for (const auto& momentum :
       std::vector<std::optional<double>>{std::nullopt, 0.0, 0.9, 1.0}) {
    check_merge<BatchNorm1dImpl>(
        {9, kChannels},
        {3, 4, 2},
        BatchNormOptions(kChannels).momentum(momentum));
  }
}

TEST_CASE("statistics of float and half layers merge", "[core]") {
  const auto batch = normal({16, kChannels}, 3) + 2;
  const auto parts = batch.split_with_sizes({6, 10});
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    const auto make = [&] {
      const auto norm = make_net<torch::nn::BatchNorm1dImpl>(1, kChannels);
      norm->to(dtype);
      return norm;
    };
    const auto norms =
        run_parts(make, parts, [&](auto& norm, const at::Tensor& part) {
          norm.forward(part.to(dtype));
        });
    // 11 bits of mantissa; a tenth of the batch shows in the statistics.
    CHECK(norms[0]
              ->running_mean.to(at::kDouble)
              .allclose(batch.mean(0) * 0.1, 2e-3, 2e-3));
    CHECK(norms[0]
              ->running_var.to(at::kDouble)
              .allclose(0.9 + 0.1 * total_variance(parts), 2e-3, 2e-3));
  }
}

TEST_CASE("statistics of a layer called twice have the exact mean", "[core]") {
  const auto batch = normal({8, kChannels}, 3) + 2;
  const auto make = [] {
    auto module = std::make_shared<RepeatedNormImpl>(kChannels);
    module->to(at::kDouble);
    return module;
  };
  const auto whole = make();
  whole->forward(batch);
  const auto parts = batch.split_with_sizes({3, 5});
  const auto merged = run_parts(make, parts, kCallOnce);
  CHECK(is_close(
      merged[0]->norm->running_mean,
      whole->norm->running_mean,
      1e-13));
  // Both calls see the same rows, so their spread is known here.
  const auto variance = 0.81 + 0.19 * total_variance(parts);
  CHECK(is_close(merged[0]->norm->running_var, variance, 1e-12));
}

TEST_CASE("a part that skips a layer has no say in it", "[core]") {
  const auto batch = normal({8, kChannels}, 3) + 2;
  const auto make = [] {
    auto module = std::make_shared<RepeatedNormImpl>(kChannels);
    module->to(at::kDouble);
    return module;
  };
  const auto merged = run_parts(
      make,
      batch.split_with_sizes({3, 5}),
      [](auto& module, const at::Tensor& part) {
        module.num_calls = part.size(0) == 5 ? 1 : 0;
        module.forward(part);
      });
  const auto rows = batch.narrow(0, 3, 5);
  for (const auto& module : merged) {
    CHECK(is_close(module->norm->running_mean, 0.1 * rows.mean(0), 1e-13));
    CHECK(is_close(
        module->norm->running_var,
        0.9 + 0.1 * rows.var(0, /*unbiased=*/true),
        1e-13));
  }
}

TEST_CASE("statistics that no part moved stay bit for bit", "[core]") {
  const auto batch = normal({6, kChannels}, 3);
  const auto make = [] {
    const auto norm = make_seasoned<torch::nn::BatchNorm1dImpl>(
        {5, kChannels},
        BatchNormOptions(kChannels));
    norm->to(at::kFloat);
    norm->eval();
    return norm;
  };
  const auto norms = run_parts(
      make,
      batch.split_with_sizes({2, 4}),
      [](auto& norm, const at::Tensor& part) {
        norm.forward(part.to(at::kFloat));
      });
  CHECK_FALSE(NormStatistics(*norms[0]).is_training());
  CHECK(is_equal(norms[0]->running_mean, make()->running_mean));
  CHECK(is_equal(norms[0]->running_var, make()->running_var));
}

TEST_CASE("InstanceNorm's statistics merge exactly", "[core]") {
  const auto options =
      torch::nn::InstanceNormOptions(kChannels).track_running_stats(true);
  const auto make = [&] {
    return make_net<torch::nn::InstanceNorm2dImpl>(1, options);
  };
  const auto batch = normal({7, kChannels, 3, 2}, 3) + 2;
  const auto whole = make();
  whole->forward(batch);
  for (const auto& norm :
       run_parts(make, batch.split_with_sizes({5, 2}), kCallOnce)) {
    CHECK(is_close(norm->running_mean, whole->running_mean, 1e-13));
    CHECK(is_close(norm->running_var, whole->running_var, 1e-13));
  }
}

TEST_CASE("layers that track nothing have no statistics to merge", "[core]") {
  const torch::nn::Sequential net(
      torch::nn::BatchNorm1d(BatchNormOptions(3).track_running_stats(false)),
      torch::nn::InstanceNorm1d(3),
      torch::nn::Linear(3, 3));
  CHECK(NormStatistics(*net).empty());
}

TEST_CASE("merging leaves graphs valid that hold statistics", "[core]") {
  const auto norm = make_net<torch::nn::BatchNorm1dImpl>(1, kChannels);
  norm->eval();
  const auto output = norm->forward(normal({4, kChannels}, 2));
  NormStatistics statistics(*norm);
  statistics.begin();
  norm->train();
  norm->forward(normal({4, kChannels}, 3));
  statistics.adopt(statistics.contribution(4));
  output.sum().backward();
  CHECK(norm->bias.grad().equal(torch::full({kChannels}, 4, at::kDouble)));
}
