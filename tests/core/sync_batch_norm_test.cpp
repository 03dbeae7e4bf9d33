#include <sstream>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/core/statistics_group.h>
#include <tandem/core/sync_batch_norm.h>

#include "tandem_catch.h"
#include "tensors.h"
#include "text.h"

using namespace tandem::test;
using tandem::SyncBatchNorm;
using torch::nn::BatchNormOptions;

namespace {

/// A group whose only participant is the caller.
class Alone final : public tandem::StatisticsGroup {
 public:
  tandem::BatchMoments combine(
      const torch::nn::Module&,
      const tandem::BatchMoments& own) override {
    ++num_meetings;
    return own;
  }
  int num_meetings = 0;
};

const std::vector<BatchNormOptions>& all_options() {
  static const std::vector<BatchNormOptions> all{
      BatchNormOptions(3),
      BatchNormOptions(3).momentum(0.4).eps(1e-2),
      BatchNormOptions(3).momentum(std::nullopt),
      BatchNormOptions(3).affine(false),
      BatchNormOptions(3).track_running_stats(false)};
  return all;
}

/// Output, derivatives of first and second order and buffers after three
/// training forwards, and the output in eval mode.
template <typename Norm>
std::vector<at::Tensor> run(Norm norm, at::ScalarType dtype) {
  norm->to(dtype);
  fill(*norm, 7);
  std::vector<at::Tensor> results;
  for (uint64_t step = 0; step < 3; ++step) {
    auto input = normal({4, 3, 2}, step, dtype).requires_grad_();
    const auto output = norm->forward(input);
    const auto first = torch::autograd::grad(
        {output.pow(3).sum()},
        {input},
        /*grad_outputs=*/{},
        /*retain_graph=*/true,
        /*create_graph=*/true);
    first[0].pow(2).sum().backward();
    results.insert(results.end(), {output, first[0], input.grad()});
  }
  norm->eval();
  results.push_back(norm->forward(normal({4, 3, 2}, 9, dtype)));
  for (const auto& tensors : {grads_of(*norm), norm->buffers()}) {
    results.insert(results.end(), tensors.begin(), tensors.end());
  }
  return snapshot(results);
}

void check_close(
    const std::vector<at::Tensor>& actual,
    const std::vector<at::Tensor>& expected,
    double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (size_t index = 0; index < expected.size(); ++index) {
    INFO("tensor " << index);
    INFO(actual[index] << expected[index]);
    CHECK(is_close(actual[index], expected[index], tolerance));
  }
}

} // namespace

TEST_CASE("SyncBatchNorm alone is BatchNorm bit for bit", "[core]") {
  for (const auto& options : all_options()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      const auto actual = run(SyncBatchNorm(options), dtype);
      const auto expected = run(torch::nn::BatchNorm1d(options), dtype);
      check_close(actual, expected, 0);
    }
  }
}

TEST_CASE("SyncBatchNorm in a group of one is BatchNorm", "[core]") {
  for (const auto& options : all_options()) {
    Alone group;
    const tandem::StatisticsScope scope(&group);
    const auto actual = run(SyncBatchNorm(options), at::kDouble);
    // In eval it meets nobody but where it has no running statistics.
    CHECK(group.num_meetings == (options.track_running_stats() ? 3 : 4));
    const auto expected = run(torch::nn::BatchNorm1d(options), at::kDouble);
    check_close(actual, expected, kDoubleTolerance);
  }
}

TEST_CASE("SyncBatchNorm in a group keeps narrow types", "[core]") {
  Alone group;
  const tandem::StatisticsScope scope(&group);
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    SyncBatchNorm norm(3);
    torch::nn::BatchNorm1d plain(3);
    norm->to(dtype);
    plain->to(dtype);
    auto input = normal({8, 3}, 1, dtype).requires_grad_();
    const auto output = norm(input);
    const auto expected = plain(input.detach());
    CHECK(output.scalar_type() == dtype);
    // 8 bits of mantissa.
    CHECK(output.allclose(expected, 1e-2, 1e-2));
    output.sum().backward();
    CHECK(input.grad().scalar_type() == dtype);
    CHECK(norm->weight.grad().scalar_type() == dtype);
    CHECK(norm->running_var.scalar_type() == dtype);
    CHECK(norm->running_var.allclose(plain->running_var, 1e-2, 1e-2));
  }
}

TEST_CASE("SyncBatchNorm in a group keeps channels_last", "[core]") {
  Alone group;
  const tandem::StatisticsScope scope(&group);
  SyncBatchNorm norm(3);
  const auto output = norm(normal({2, 3, 4, 5}, 1, at::kFloat)
                               .contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(output.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_CASE("an empty batch leaves running statistics alone", "[core]") {
  Alone group;
  const tandem::StatisticsScope scope(&group);
  SyncBatchNorm norm(3);
  const auto output = norm(torch::zeros({0, 3, 2}));
  CHECK(output.sizes() == std::vector<int64_t>{0, 3, 2});
  CHECK(is_equal(norm->running_mean, torch::zeros({3})));
  CHECK(is_equal(norm->running_var, torch::ones({3})));
}

TEST_CASE("SyncBatchNorm reads and writes BatchNorm's checkpoints", "[core]") {
  torch::nn::BatchNorm2d plain(3);
  plain->forward(normal({4, 3, 2, 2}, 1, at::kFloat));
  fill(*plain, 5);
  std::stringstream stream;
  torch::save(plain, stream);
  SyncBatchNorm norm(3);
  torch::load(norm, stream);
  CHECK(norm->named_parameters().keys() == plain->named_parameters().keys());
  CHECK(norm->named_buffers().keys() == plain->named_buffers().keys());
  CHECK(are_close(norm->parameters(), plain->parameters(), 0));
  CHECK(are_close(norm->buffers(), plain->buffers(), 0));
}

TEST_CASE("clone of SyncBatchNorm is deep and keeps options", "[core]") {
  SyncBatchNorm norm(BatchNormOptions(3).eps(0.5).momentum(std::nullopt));
  norm(normal({4, 3}, 1, at::kFloat));
  const auto copy =
      std::dynamic_pointer_cast<tandem::SyncBatchNormImpl>(norm->clone());
  REQUIRE(copy);
  CHECK(copy->options.eps() == 0.5);
  CHECK_FALSE(copy->options.momentum().has_value());
  CHECK(are_close(copy->buffers(), norm->buffers(), 0));
  copy->forward(normal({4, 3}, 2, at::kFloat));
  CHECK(copy->num_batches_tracked.item<int64_t>() == 2);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 1);
  CHECK_FALSE(copy->weight.is_alias_of(norm->weight));
}

TEST_CASE("SyncBatchNorm names the channels it expects", "[core]") {
  SyncBatchNorm norm(3);
  for (const auto& sizes : {std::vector<int64_t>{3}, {4, 5}, {2, 1, 3}}) {
    const auto message = message_thrown_by([&] { norm(torch::zeros(sizes)); });
    CHECK(contains(message, "expected [rows, 3, ...]"));
    CHECK_THROWS_AS(norm(torch::zeros(sizes)), tandem::ShapeError);
  }
  CHECK(contains(c10::str(norm), "SyncBatchNorm(3, eps=1e-05, momentum=0.1"));
}
