#include <tandem/testing/faulty_backend.h>

#include <torch/torch.h>

#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using tandem::testing::Fault;
using tandem::testing::faulty_backend;
using tandem::testing::RankContext;

namespace {

/// Three all-reduces of ones and a broadcast from rank 1, by each of 2 ranks.
std::vector<std::vector<at::Tensor>> run_with(Fault fault) {
  const comm::ScopedBackend scope(
      at::kCPU,
      faulty_backend(comm::backend_factory(at::kCPU), fault));
  return tandem::testing::run_ranks(2, [](RankContext& context) {
    auto& group = *context.group();
    TORCH_CHECK(group.backend_name(at::kCPU) == "faulty");
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < 3; ++i) {
      tensors.push_back(torch::ones({4}));
      group.all_reduce(tensors.back(), comm::ReduceOp::kMean);
    }
    tensors.push_back(torch::full({4}, context.rank() + 5.0));
    group.broadcast(tensors.back(), 1);
    group.barrier();
    return tensors;
  });
}

void check_values(
    const std::vector<std::vector<at::Tensor>>& results,
    const std::vector<double>& expected) {
  for (const auto& tensors : results) {
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(at::equal(tensors[i], torch::full({4}, expected[i])));
    }
  }
}

} // namespace

TEST_CASE("a faulty backend forgets the division", "[testing]") {
  check_values(run_with({.kind = Fault::Kind::kForgetsDivision}), {2, 2, 2, 6});
}

TEST_CASE("a faulty backend drops the all-reduce it was told to", "[testing]") {
  const comm::ScopedBackend scope(
      at::kCPU,
      faulty_backend(
          comm::backend_factory(at::kCPU),
          {.kind = Fault::Kind::kDropsAllReduce, .dropped_index = 1}));
  const auto sums = tandem::testing::run_ranks(2, [](RankContext& context) {
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < 3; ++i) {
      tensors.push_back(torch::ones({4}));
      context.group()->all_reduce(tensors.back());
    }
    return tensors;
  });
  check_values(sums, {2, 1, 2});
}
