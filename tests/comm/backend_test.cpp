#include <tandem/comm/backend.h>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <tandem/core/errors.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;

namespace {

/// Counts the groups that were made with it.
comm::BackendFactory counting_factory(int& num_made) {
  const auto real = comm::backend_factory(at::kCPU);
  return {"counting", [&num_made, real](const comm::BackendRequest& request) {
            ++num_made;
            return real.make(request);
          }};
}

} // namespace

TEST_CASE("a group names the backend of each device it serves", "[comm]") {
  const auto group = comm::connect_group({});
  CHECK(group->backend_name(at::kCPU) == "gloo");
  CHECK(group->device() == at::Device(at::kCPU));
  CHECK_THROWS_AS(group->backend_name(at::kCUDA), tandem::ShapeError);
}

TEST_CASE("a scoped backend serves until its scope ends", "[comm]") {
  int num_outer = 0;
  int num_inner = 0;
  {
    const comm::ScopedBackend outer(at::kCPU, counting_factory(num_outer));
    comm::connect_group({});
    {
      const comm::ScopedBackend inner(at::kCPU, counting_factory(num_inner));
      CHECK(comm::backend_factory(at::kCPU).name == "counting");
      comm::connect_group({});
    }
    CHECK(num_inner == 1);
    comm::connect_group({});
  }
  comm::connect_group({});
  CHECK(comm::backend_factory(at::kCPU).name == "gloo");
  // The inner one calls the outer one, which was the real one for it.
  CHECK(num_outer == 3);
  CHECK(num_inner == 1);
}

TEST_CASE("a device without a backend is refused before anything", "[comm]") {
  CHECK_THROWS_AS(comm::backend_factory(at::kPrivateUse1), tandem::ConfigError);
  comm::BackendRequest request;
  request.device = at::Device(at::kPrivateUse1, 0);
  CHECK_THROWS_AS(comm::connect_group(request), tandem::ConfigError);
}

TEST_CASE("a world of one needs no store and passes values through", "[comm]") {
  const auto begin = std::chrono::steady_clock::now();
  const auto group = comm::connect_group({});
  auto tensor = torch::arange(4);
  group->all_reduce(tensor);
  group->broadcast(tensor, 0);
  group->barrier();
  CHECK(at::equal(tensor, torch::arange(4)));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
}

TEST_CASE("sequence numbers differ at each call", "[comm]") {
  const auto group = comm::connect_group({});
  const auto first = group->next_sequence();
  CHECK(group->next_sequence() == first + 1);
}
