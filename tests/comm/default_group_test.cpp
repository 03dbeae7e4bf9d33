#include <tandem/comm/comm.h>

#include <thread>

#include <torch/torch.h>

#include <tandem/comm/backend.h>
#include <tandem/core/errors.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;

TEST_CASE("a process without a group is a world of one", "[comm]") {
  CHECK_FALSE(comm::is_initialized());
  CHECK(comm::rank() == 0);
  CHECK(comm::world_size() == 1);
  CHECK(comm::is_main());
  CHECK_THROWS_AS(comm::default_group(), tandem::ConfigError);
  auto tensor = torch::ones({2});
  CHECK_THROWS_AS(comm::all_reduce(tensor), tandem::ConfigError);
  comm::destroy_process_group();
}

TEST_CASE("a scoped group is the thread's own and nests", "[comm]") {
  const auto first = comm::connect_group({});
  const auto second = comm::connect_group({});
  {
    const comm::ScopedGroup outer(first);
    CHECK(comm::default_group() == first);
    {
      const comm::ScopedGroup inner(second);
      CHECK(comm::default_group() == second);
    }
    CHECK(comm::default_group() == first);
    bool seen_elsewhere = true;
    std::thread([&] { seen_elsewhere = comm::is_initialized(); }).join();
    CHECK_FALSE(seen_elsewhere);
  }
  CHECK_FALSE(comm::is_initialized());
}

TEST_CASE("functions on the default group use the thread's rank", "[comm]") {
  const auto results = tandem::testing::run_ranks(3, [](auto&) {
    auto sum = torch::full({2}, comm::rank() + 1);
    comm::all_reduce(sum);
    auto root = torch::full({2}, comm::rank());
    comm::broadcast(root, 2);
    comm::barrier();
    return std::vector<at::Tensor>{
        sum,
        root,
        torch::tensor({comm::world_size(), int64_t{comm::is_main()}})};
  });
  for (size_t rank = 0; rank < results.size(); ++rank) {
    CHECK(at::equal(results[rank][0], torch::full({2}, 6)));
    CHECK(at::equal(results[rank][1], torch::full({2}, 2)));
    CHECK(results[rank][2][0].item<int64_t>() == 3);
    CHECK(results[rank][2][1].item<int64_t>() == (rank == 0 ? 1 : 0));
  }
}
