#include <tandem/sim/hazard_error.h>
#include <tandem/sim/sim.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <tandem/comm/backend.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

/// What `function` gives on each of three ranks, each on a device of its own.
std::vector<Tensors> on_ranks(
    const std::function<Tensors(comm::ProcessGroup&, at::Device)>& function) {
  return testing::run_ranks(
      3,
      [&](testing::RankContext& context) {
        const auto device = sim::device(context.rank());
        return function(*context.group(), device);
      },
      testing::RunRanksOptions().device(sim::device(0)));
}

} // namespace

TEST_CASE(
    "collectives on sim devices give what they give on the CPU",
    "[sim]") {
  start_devices(3);
  const auto results =
      on_ranks([](comm::ProcessGroup& group, at::Device device) {
        const auto rank = static_cast<double>(group.rank());
        auto sum = torch::full({5}, rank + 1, device);
        group.all_reduce(sum);
        auto mean = torch::full({2}, 3 * rank, device);
        group.all_reduce(mean, comm::ReduceOp::kMean);
        auto root = torch::full({3}, rank, device);
        group.broadcast(root, 2);
        group.barrier();
        return Tensors{sum, mean, root};
      });
  REQUIRE(results.size() == 3);
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const auto device = sim::device(static_cast<int64_t>(rank));
    CHECK(results[rank].at(0).device() == device);
    check_same_bits(
        results[rank],
        {torch::full({5}, 6.0), torch::full({2}, 3.0), torch::full({3}, 2.0)});
  }
}

TEST_CASE("a collective's future holds the device's tensors", "[sim]") {
  start_devices(3);
  const auto results =
      on_ranks([](comm::ProcessGroup& group, at::Device device) {
        Tensors tensors{torch::ones({4}, device)};
        const auto work = group.c10d_group()->allreduce(tensors);
        const auto future = work->getFuture();
        future->wait();
        return future->value().toTensorVector();
      });
  for (size_t rank = 0; rank < results.size(); ++rank) {
    REQUIRE(results[rank].size() == 1);
    CHECK(results[rank][0].device() == sim::device(static_cast<int64_t>(rank)));
    CHECK(same_bits(results[rank][0], torch::full({4}, 3.0F)));
  }
}

TEST_CASE(
    "a collective's result before its work was waited for is a hazard",
    "[sim][hazards]") {
  at::set_num_threads(1);
  sim::init({.devices = 3, .hazard_checks = true});
  const auto results = on_ranks([](comm::ProcessGroup& group,
                                   at::Device device) {
    Tensors tensors{torch::ones({4}, device)};
    const auto work = group.c10d_group()->allreduce(tensors);
    const auto text =
        testing::thrown_text<sim::HazardError>([&] { tensors[0].add_(1); });
    work->wait();
    tensors[0].add_(1);
    return Tensors{
        tensors[0],
        torch::tensor(
            text.value_or("").find("c10d::allreduce_") != std::string::npos)};
  });
  REQUIRE(results.size() == 3);
  for (const auto& result : results) {
    check_same_bits(result, {torch::full({4}, 4.0F), torch::tensor(true)});
  }
}

TEST_CASE("init registers the backend for sim devices", "[sim]") {
  start_devices(3);
  CHECK(comm::backend_factory(at::kPrivateUse1).name == "sim");
}

} // namespace tandem::sim_test
