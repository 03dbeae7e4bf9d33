// DistributedDataParallel over ranks whose modules lie on several devices.
#include <cstdint>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/sim/sim.h>
#include <tandem/testing/rank_threads.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

/// The first half on one device, the second on another.
struct HalvesImpl : torch::nn::Module {
  HalvesImpl(at::Device one, at::Device other)
      : first(register_module("first", torch::nn::Linear(2, 3))),
        second(register_module("second", torch::nn::Linear(3, 1))),
        first_device(one),
        second_device(other) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      parameter.fill_(0.5);
    }
    first->to(one);
    second->to(other);
  }
  at::Tensor forward(const at::Tensor& input) {
    return second(first(input.to(first_device)).to(second_device));
  }
  torch::nn::Linear first;
  torch::nn::Linear second;
  at::Device first_device;
  at::Device second_device;
};
TORCH_MODULE(Halves);

} // namespace

TEST_CASE("a rank's module may span two devices", "[sim][ddp][DDP-15]") {
  start_devices(4);
  Halves alone(at::kCPU, at::kCPU);
  alone(torch::ones({1, 2})).sum().backward();
  const auto results = testing::run_ranks(
      2,
      [&](testing::RankContext& context) {
        // Of its own, since a device has one autograd thread in a process.
        const auto first = 2 * context.rank();
        Halves net(sim::device(first), sim::device(first + 1));
        DistributedDataParallel model(net);
        Tensors gradients;
        for (int64_t step = 0; step < 2; ++step) {
          model->zero_grad();
          // The mean over the ranks' inputs is one.
          model(torch::full({1, 2}, 0.5 + static_cast<double>(context.rank())))
              .sum()
              .backward();
        }
        for (const auto& parameter : net->parameters()) {
          gradients.push_back(parameter.grad());
        }
        return gradients;
      },
      testing::RunRanksOptions().device(sim::device(0)));
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const auto& gradients = results[rank];
    const auto first = 2 * static_cast<int64_t>(rank);
    CHECK(gradients.front().device() == sim::device(first));
    CHECK(gradients.back().device() == sim::device(first + 1));
    for (size_t i = 0; i < gradients.size(); ++i) {
      CHECK(torch::allclose(gradients[i].cpu(), alone->parameters()[i].grad()));
    }
  }
}

TEST_CASE("a module on CPU and device is refused", "[sim][ddp][DDP-15]") {
  start_devices(4);
  const auto errors = testing::try_ranks(
      2,
      [&](testing::RankContext&) {
        Halves net(sim::device(0), at::kCPU);
        DistributedDataParallel model(net);
      },
      testing::RunRanksOptions().device(sim::device(0)));
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK_THAT(
        message_of(error),
        Catch::Matchers::ContainsSubstring("'second.weight': expected on"));
  }
}

} // namespace tandem::sim_test
