#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

struct OffsetImpl : torch::nn::Module {
  OffsetImpl()
      : weight(register_parameter("weight", torch::ones({1}))),
        offset(register_buffer("offset", torch::zeros({2}))),
        count(register_buffer("count", torch::zeros({1}, at::kLong))) {}
  at::Tensor forward(const at::Tensor& input) {
    return weight * input + offset.sum();
  }
  void add(int64_t number) {
    offset.add_(number);
    count.add_(number);
  }
  double value() const {
    return offset[1].item<double>() + 100.0 * count.item<double>();
  }
  at::Tensor weight, offset, count;
};
TORCH_MODULE(Offset);

/// The buffers' value on each of three ranks after forwards of `body`, before
/// each of which rank r adds r + 1.
template <typename Body>
std::vector<double> values_after(
    int forwards,
    const Options& options,
    Body body) {
  return run_ranks(3, [&](RankContext& context) {
    Offset net;
    DistributedDataParallel model(net, options);
    for (int i = 0; i < forwards; ++i) {
      net->add(context.rank() + 1);
      body(model);
    }
    return net->value();
  });
}

void step_offset(DistributedDataParallel<OffsetImpl>& model) {
  model(torch::ones({1})).backward();
}

TEST_CASE("buffers follow rank 0 at each forward", "[ddp][BUF-01]") {
  const auto values = values_after(3, Options(), step_offset);
  CHECK(values == std::vector<double>(3, 303.0));
}

TEST_CASE("buffers stay local if switched off", "[ddp][BUF-02]") {
  const auto values =
      values_after(3, Options().broadcast_buffers(false), step_offset);
  CHECK(values == std::vector<double>{303.0, 606.0, 909.0});
}

TEST_CASE(
    "buffers stay local under no_sync and without grad",
    "[ddp][BUF-02]") {
  const std::vector<double> local{101.0, 202.0, 303.0};
  CHECK(values_after(1, Options(), [](auto& model) {
          const auto guard = model->no_sync();
          step_offset(model);
        }) == local);
  CHECK(values_after(1, Options(), [](auto& model) {
          const torch::NoGradGuard no_grad;
          model(torch::ones({1}));
        }) == local);
  CHECK(values_after(1, Options(), [](auto& model) {
          const c10::InferenceMode inference;
          model(torch::ones({1}));
        }) == local);
}

TEST_CASE("all buffers of a dtype travel in one transfer", "[ddp][BUF-01]") {
  run_ranks(2, [](RankContext&) {
    Offset net;
    DistributedDataParallel model(net);
    const auto before = model->counters();
    model(torch::ones({1}));
    const auto after = model->counters();
    TORCH_CHECK(after.collectives - before.collectives == 2);
    TORCH_CHECK(after.bytes_moved - before.bytes_moved == 2 * 4 + 8);
  });
}

TEST_CASE("a broadcast leaves earlier graphs valid", "[ddp][BUF-01]") {
  run_ranks(2, [](RankContext&) {
    torch::nn::BatchNorm1d net(torch::nn::BatchNorm1dOptions(2));
    net->eval();
    DistributedDataParallel model(net);
    const auto first = model(normal({3, 2}, 1, at::kFloat));
    const auto second = model(normal({3, 2}, 2, at::kFloat));
    (first + second).sum().backward();
  });
}

TEST_CASE("an eval forward with grad is synced", "[ddp][DDP-97]") {
  run_ranks(2, [](RankContext& context) {
    Offset net;
    DistributedDataParallel model(net);
    model->eval();
    TORCH_CHECK(!net->is_training());
    model(torch::full({1}, static_cast<float>(context.rank()))).backward();
    TORCH_CHECK(net->weight.grad().item<double>() == 0.5);
  });
}

TEST_CASE("one rank may evaluate alone", "[ddp][DDP-97]") {
  run_ranks(2, [](RankContext& context) {
    Offset net;
    DistributedDataParallel model(net);
    step_offset(model);
    const auto before = model->counters().collectives;
    for (int i = 0; context.rank() == 0 && i < 6; ++i) {
      const torch::NoGradGuard no_grad;
      model(torch::ones({1}));
    }
    TORCH_CHECK(model->counters().collectives == before);
    step_offset(model);
  });
}

} // namespace
} // namespace tandem::test
