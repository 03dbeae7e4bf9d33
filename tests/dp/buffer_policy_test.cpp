// What becomes of the statistics that the replicas' forwards make.
#include <optional>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;
using tandem::BufferPolicy;
using torch::nn::BatchNorm1dImpl;
using torch::nn::BatchNormOptions;

namespace {

constexpr int64_t kNumFeatures = 3;

at::Tensor batch_of(int64_t rows, uint64_t step) {
  return normal({rows, kNumFeatures, 2}, step) * 2 + 3;
}

/// The chunks' unbiased variances and the variance of their means, weighted by
/// rows.
at::Tensor total_variance(const at::Tensor& batch, size_t devices) {
  auto variance = torch::zeros({kNumFeatures}, at::kDouble);
  const auto mean = batch.mean(at::IntArrayRef{0, 2});
  for (const auto& chunk : batch.chunk(static_cast<int64_t>(devices))) {
    const auto from_mean = chunk.mean(at::IntArrayRef{0, 2}) - mean;
    variance += (chunk.var(at::IntArrayRef{0, 2}) + from_mean.square()) *
        chunk.size(0) / batch.size(0);
  }
  return variance;
}

tandem::DataParallelOptions with_policy(size_t count, BufferPolicy policy) {
  return on_devices(count).buffer_policy(policy);
}

/// Remembers the largest input it has seen last.
struct StatefulImpl : torch::nn::Cloneable<StatefulImpl> {
  StatefulImpl() {
    reset();
  }
  void reset() override {
    norm = register_module("norm", torch::nn::BatchNorm1d(kNumFeatures));
    last = register_buffer("last", torch::zeros({}, at::kDouble));
  }
  at::Tensor forward(const at::Tensor& input) {
    last.copy_(input.detach().max());
    return norm(input);
  }
  torch::nn::BatchNorm1d norm{nullptr};
  at::Tensor last;
};

} // namespace

TEST_CASE("merged statistics are those of the whole batch", "[dp]") {
  for (const auto& momentum :
       std::vector<std::optional<double>>{0.1, std::nullopt}) {
    const auto options = BatchNormOptions(kNumFeatures).momentum(momentum);
    for (const size_t count : {2, 3, 5}) {
      for (const int64_t rows : {5, 9}) {
        const auto net = make_base<BatchNorm1dImpl>(1, options);
        const auto plain = make_net<BatchNorm1dImpl>(1, options);
        tandem::DataParallel model(
            net,
            with_policy(count, BufferPolicy::kMerge));
        auto variance = torch::ones({kNumFeatures}, at::kDouble);
        for (uint64_t step = 0; step < 3; ++step) {
          const auto batch = batch_of(rows, step);
          const double factor =
              momentum.value_or(1.0 / static_cast<double>(step + 1));
          variance =
              variance * (1 - factor) + total_variance(batch, count) * factor;
          plain->forward(batch);
          model(batch).sum().backward();
        }
        INFO(count << " devices, " << rows << " rows");
        CHECK(is_close(net->running_mean.cpu(), plain->running_mean, 1e-12));
        CHECK(is_close(net->running_var.cpu(), variance, 1e-12));
        CHECK(net->num_batches_tracked.item<int64_t>() == 3);
      }
    }
  }
}

TEST_CASE("other buffers are replica 0's when statistics merge", "[dp]") {
  const auto net = make_base<StatefulImpl>(1);
  tandem::DataParallel model(net, with_policy(2, BufferPolicy::kMerge));
  const auto batch = batch_of(7, 1);
  model(batch);
  CHECK(is_equal(net->last.cpu(), batch.narrow(0, 0, 4).max()));
  const auto mean = batch.mean(at::IntArrayRef{0, 2});
  for (const auto& replica : {net, model->replica(1)}) {
    CHECK(is_close(replica->norm->running_mean.cpu(), 0.1 * mean, 1e-12));
  }
}

TEST_CASE("statistics merge in every forward under no_sync", "[dp]") {
  const auto net = make_base<BatchNorm1dImpl>(1, kNumFeatures);
  const auto plain = make_net<BatchNorm1dImpl>(1, kNumFeatures);
  tandem::DataParallel model(net, with_policy(3, BufferPolicy::kMerge));
  std::optional<tandem::NoSyncGuard> guard(model->no_sync());
  for (uint64_t step = 0; step < 4; ++step) {
    if (step == 3) {
      guard.reset();
    }
    plain->forward(batch_of(7, step));
    model(batch_of(7, step)).sum().backward();
  }
  CHECK(is_close(net->running_mean.cpu(), plain->running_mean, 1e-12));
}

TEST_CASE("evaluation leaves merged statistics bit for bit", "[dp]") {
  const auto net = make_base<BatchNorm1dImpl>(1, kNumFeatures);
  net->to(at::kFloat);
  tandem::DataParallel model(net, with_policy(2, BufferPolicy::kMerge));
  model(batch_of(5, 1).to(at::kFloat));
  const auto before = snapshot(net->buffers());
  model->eval();
  const auto copies_of_a_forward = [&] {
    const auto earlier = model->counters().copies;
    model(batch_of(5, 2).to(at::kFloat));
    return model->counters().copies - earlier;
  };
  const auto evaluation_copies = copies_of_a_forward();
  CHECK(are_close(net->buffers(), before, 0));
  model->train();
  CHECK(copies_of_a_forward() > evaluation_copies);
}

TEST_CASE("without a policy each replica keeps its statistics", "[dp]") {
  const auto net = make_base<BatchNorm1dImpl>(1, kNumFeatures);
  tandem::DataParallel model(net, with_policy(2, BufferPolicy::kNone));
  std::vector<std::shared_ptr<BatchNorm1dImpl>> own{
      make_net<BatchNorm1dImpl>(1, kNumFeatures),
      make_net<BatchNorm1dImpl>(1, kNumFeatures)};
  for (uint64_t step = 0; step < 3; ++step) {
    const auto chunks = batch_of(7, step).split_with_sizes({4, 3});
    own[0]->forward(chunks[0]);
    own[1]->forward(chunks[1]);
    model(batch_of(7, step)).sum().backward();
  }
  const auto replica = model->replica(1);
  CHECK(is_close(net->running_var.cpu(), own[0]->running_var));
  CHECK(is_close(replica->running_var.cpu(), own[1]->running_var));
  model->refresh();
  CHECK(is_equal(replica->running_var.cpu(), net->running_var.cpu()));
}

TEST_CASE("wrapper says what becomes of buffers", "[dp]") {
  const auto text_of = [](BufferPolicy policy) {
    tandem::DataParallel model(
        make_base<BatchNorm1dImpl>(1, kNumFeatures),
        with_policy(2, policy));
    return model->describe();
  };
  CHECK(contains(text_of(BufferPolicy::kFirst), "buffers at every forward)"));
  CHECK(contains(text_of(BufferPolicy::kMerge), "statistics are merged"));
  CHECK(contains(text_of(BufferPolicy::kNone), "buffers by refresh() only"));
}
