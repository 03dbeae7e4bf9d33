#include <tandem/dp/memory_report.h>

#include "device_balance.h"
#include "nets.h"
#include "tandem_catch.h"
#include "warnings.h"

using namespace tandem::dp_test;
using tandem::detail::DeviceSize;
using tandem::detail::find_imbalance;

namespace {

constexpr int64_t kWidth = 100;
constexpr int64_t kRowBytes = kWidth * 8;

/// exp(x * w) and a buffer: its graph keeps x for w and the result for exp.
struct ExpImpl : torch::nn::Cloneable<ExpImpl> {
  ExpImpl() {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({kWidth}));
    count = register_buffer("count", torch::zeros({3}));
  }
  at::Tensor forward(const at::Tensor& input) {
    return (input * weight).exp();
  }
  at::Tensor weight;
  at::Tensor count;
};

/// Bytes of this many doubles, padded as replicas pad them.
int64_t padded_bytes(int64_t numel) {
  return (numel + 15) / 16 * 16 * 8;
}

} // namespace

TEST_CASE("memory report counts what each replica holds", "[dp]") {
  const size_t count = GENERATE(2, 4);
  const auto net = make_base<ExpImpl>(1);
  tandem::DataParallel model(net, on_devices(count));
  torch::optim::Adam optimizer(net->parameters(), 0.1);
  const auto before = model->memory_report();
  CHECK_FALSE(before.replicas[0].outputs_bytes);
  CHECK_FALSE(before.replicas[0].optimizer_bytes);
  CHECK_FALSE(before.mean_loss_saves_bytes);
  CHECK(before.replicas[0].gradients_bytes == 0);

  model(normal({8, kWidth}, 1)).sum().backward();
  optimizer.step();
  const auto report = model->memory_report(optimizer);
  REQUIRE(report.replicas.size() == count);
  CHECK_FALSE(report.output_device);
  for (size_t index = 0; index < count; ++index) {
    INFO("replica " << index);
    const auto& memory = report.replicas[index];
    const bool is_first = index == 0;
    CHECK(memory.device == devices(count)[index]);
    CHECK(
        memory.parameters_bytes ==
        (is_first ? kRowBytes : padded_bytes(kWidth)));
    CHECK(memory.buffers_bytes == (is_first ? 3 * 8 : padded_bytes(3)));
    CHECK(memory.gradients_bytes == (is_first ? kRowBytes : 0));
    CHECK(memory.optimizer_bytes == (is_first ? 2 * kRowBytes : 0));
    CHECK(memory.outputs_bytes == (is_first ? 8 * kRowBytes : 0));
  }
  CHECK(report.mean_loss_saves_bytes == 8 * kRowBytes);
}

TEST_CASE("memory report knows the state of LibTorch's optimizers", "[dp]") {
  namespace optim = torch::optim;
  const auto net = make_base<ExpImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto state_bytes = [&](auto&& optimizer) {
    const auto closure = [&] {
      optimizer.zero_grad();
      auto loss = model(normal({4, kWidth}, 1)).mean();
      loss.backward();
      return loss;
    };
    optimizer.step(closure);
    optimizer.step(closure);
    return model->memory_report(optimizer).replicas[0].optimizer_bytes;
  };
  const auto parameters = net->parameters();
  CHECK(state_bytes(optim::SGD(parameters, 0.01)) == 0);
  CHECK(
      state_bytes(
          optim::SGD(parameters, optim::SGDOptions(0.01).momentum(0.9))) ==
      kRowBytes);
  CHECK(
      state_bytes(
          optim::AdamW(parameters, optim::AdamWOptions(0.01).amsgrad(true))) ==
      3 * kRowBytes);
  CHECK(state_bytes(optim::Adagrad(parameters, 0.01)) == kRowBytes);
  CHECK(
      state_bytes(optim::RMSprop(
          parameters,
          optim::RMSpropOptions(0.01).momentum(0.9).centered(true))) ==
      3 * kRowBytes);
  CHECK(
      state_bytes(
          optim::LBFGS(parameters, optim::LBFGSOptions(0.01).max_iter(1))) >
      2 * kRowBytes);
}

TEST_CASE("activations are what the forward's graph keeps", "[dp][only-sim]") {
  const size_t count = GENERATE(1, 2, 4);
  const auto net = make_base<ExpImpl>(1);
  tandem::DataParallel model(net, on_devices(count));
  const auto input = normal({7, kWidth}, 1);
  const auto chunks = input.chunk(static_cast<int64_t>(count));
  const auto check_kept = [&](int64_t tensors_per_row) {
    const auto report = model->memory_report();
    for (size_t index = 0; index < count; ++index) {
      INFO("replica " << index << " of " << count);
      CHECK(
          report.replicas[index].activations_bytes ==
          tensors_per_row * chunks[index].size(0) * kRowBytes);
    }
  };
  const auto first = model(input);
  check_kept(2);
  const auto second = model(input);
  check_kept(2);
  {
    const torch::NoGradGuard no_grad;
    const auto output = model(input);
    check_kept(count == 1 ? 1 : 0); // one device gathers nothing
  }
  CHECK_THROWS_AS(model(normal({7, 3}, 1)), c10::Error);
  CHECK_FALSE(model->memory_report().replicas[0].activations_bytes);
}

TEST_CASE("memory report has the allocator's numbers", "[dp][only-sim]") {
  const auto net = make_base<ExpImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto output = model(normal({6, kWidth}, 1));
  const auto report = model->memory_report();
  const auto& second = report.replicas[1];
  CHECK(
      second.current_bytes ==
      second.parameters_bytes + second.buffers_bytes +
          *second.activations_bytes);
  CHECK(*second.peak_bytes >= *second.current_bytes);
  CHECK(*report.replicas[0].current_bytes > *second.current_bytes);
}

TEST_CASE("what the CPU cannot tell is absent", "[dp][only-cpu]") {
  const auto net = make_base<ExpImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto output = model(normal({6, kWidth}, 1));
  const auto memory = model->memory_report().replicas[0];
  CHECK_FALSE(memory.activations_bytes);
  CHECK_FALSE(memory.current_bytes);
  CHECK_FALSE(memory.peak_bytes);
  CHECK(memory.outputs_bytes == 6 * kRowBytes);
}

TEST_CASE("outputs count on the output device", "[dp][only-sim]") {
  const auto input = normal({6, kWidth}, 1);
  const auto net = make_base<ExpImpl>(1);
  tandem::DataParallel model(net, on_devices(2).output_device(devices(2)[1]));
  const auto output = model(input);
  CHECK(model->memory_report().replicas[0].outputs_bytes == 0);
  CHECK(model->memory_report().replicas[1].outputs_bytes == 6 * kRowBytes);

  const auto third = devices(3)[2];
  tandem::DataParallel other(net, on_devices(2).output_device(third));
  const auto moved = other(input);
  const auto report = other->memory_report();
  CHECK(report.replicas[0].outputs_bytes == 0);
  REQUIRE(report.output_device);
  CHECK(report.output_device->device == third);
  CHECK(report.output_device->outputs_bytes == 6 * kRowBytes);
  CHECK(contains(report.text(), "outputs on " + third.str()));
}

TEST_CASE("mean_loss saves device 0 what the report says", "[dp][only-sim]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 4, 1000);
  tandem::DataParallel model(net, on_devices(4));
  const auto input = normal({64, 4}, 1);
  const auto target = normal({64, 1000}, 2).to(device());
  const auto criterion = [](const at::Tensor& y, const at::Tensor& t) {
    return (y - t).pow(2).mean(1);
  };
  auto& allocator = *c10::getDeviceAllocator(device().type());
  const auto peak_above_now = [&](const auto& step) {
    const auto before = *model->memory_report().replicas[0].current_bytes;
    allocator.resetPeakStats(0);
    step();
    return *model->memory_report().replicas[0].peak_bytes - before;
  };
  int64_t promised = 0;
  const auto gathered = peak_above_now([&] {
    const auto output = model(input);
    promised = *model->memory_report().mean_loss_saves_bytes;
    criterion(output, target).mean().backward();
  });
  net->zero_grad();
  const auto in_replicas = peak_above_now(
      [&] { model->mean_loss(criterion, target, input).backward(); });
  CHECK(promised == 64 * 1000 * 8);
  CHECK(gathered - in_replicas >= promised);
}

TEST_CASE("report's text names what the first device holds more of", "[dp]") {
  const auto net = make_base<ExpImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  torch::optim::Adam optimizer(net->parameters(), 0.1);
  model(normal({1000, kWidth}, 1)).sum().backward();
  optimizer.step();
  const auto text = model->memory_report(optimizer).text();
  CHECK(contains(text, "memory, KiB"));
  CHECK(contains(text, "replica 1 on " + devices(2)[1].str()));
  CHECK(contains(text, "781.2 KiB of gathered outputs"));
  CHECK(contains(text, "1.6 KiB of optimizer state, 0.8 KiB of gradients"));
  CHECK(contains(text, "mean_loss"));
}

TEST_CASE("devices of very unequal size are found", "[dp][only-cpu]") {
  const auto sim = [](int64_t index, int64_t memory, int64_t cores) {
    return DeviceSize{at::Device(at::kCUDA, index), memory, cores};
  };
  CHECK_FALSE(find_imbalance({sim(0, 100, 8), sim(1, 75, 6)}));
  const auto memory = find_imbalance({sim(0, 100, 8), sim(1, 74, 8)});
  REQUIRE(memory);
  CHECK(contains(*memory, "got cuda:1, which has 74 % of the memory"));
  CHECK(contains(*memory, "of cuda:0"));
  const auto kind =
      find_imbalance({sim(0, 80, 5), sim(1, 80, 8), sim(2, 80, 8)});
  REQUIRE(kind);
  CHECK(contains(*kind, "got cuda:0, which has 62 % of the multiprocessors"));
  CHECK_FALSE(find_imbalance({{at::kCPU, {}, {}}, {at::kCPU, {}, {}}}));
}
