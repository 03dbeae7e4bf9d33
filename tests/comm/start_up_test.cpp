#include <tandem/comm/backend.h>

#include <future>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::missing_parts;
using tandem::testing::thrown_text;

namespace {

comm::BackendRequest request_for(
    const c10::intrusive_ptr<c10d::Store>& store,
    int64_t rank,
    int64_t size,
    std::chrono::milliseconds startup_timeout) {
  comm::BackendRequest request;
  request.store = store;
  request.rank = rank;
  request.size = size;
  request.startup_timeout = startup_timeout;
  return request;
}

} // namespace

TEST_CASE("ranks that do not come are named at the limit", "[comm][ENV-03]") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto text_of_rank = [&](int64_t rank) {
    return thrown_text<tandem::TimeoutError>(
        [&] { comm::connect_group(request_for(store, rank, 4, 300ms)); });
  };
  auto other = std::async(std::launch::async, text_of_rank, 2);
  const auto text = text_of_rank(0);
  const auto other_text = other.get();
  REQUIRE(text.has_value());
  REQUIRE(other_text.has_value());
  CHECK(missing_parts(*text, {"[comm rank 0/4]", "ranks 1 and 3", "300 ms"})
            .empty());
  CHECK(
      missing_parts(*other_text, {"[comm rank 2/4]", "ranks 1 and 3"}).empty());
}

TEST_CASE("a rank that comes late is waited for", "[comm][ENV-03]") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  auto first = std::async(std::launch::async, [&] {
    // Its arrival is what the late rank looks for.
    return comm::connect_group(request_for(store, 0, 2, 20s));
  });
  store->wait({"tandem/group/1/arrived/0"}, 20s);
  CHECK(first.wait_for(200ms) == std::future_status::timeout);
  auto late = comm::connect_group(request_for(store, 1, 2, 20s));
  CHECK(first.get()->size() == 2);
  CHECK(late->rank() == 1);
}

TEST_CASE("a store serves one group after the other", "[comm]") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto sum_in_new_group = [&](int64_t rank) {
    const auto group = comm::connect_group(request_for(store, rank, 2, 20s));
    auto tensor = torch::full({1}, rank + 1);
    group->all_reduce(tensor);
    group->barrier();
    return tensor.item<int64_t>();
  };
  for (int round = 0; round < 3; ++round) {
    auto other = std::async(std::launch::async, sum_in_new_group, 1);
    CHECK(sum_in_new_group(0) == 3);
    CHECK(other.get() == 3);
  }
  // Nobody is taken for present because of an earlier group.
  const auto alone = thrown_text<tandem::TimeoutError>(
      [&] { comm::connect_group(request_for(store, 0, 2, 300ms)); });
  CHECK(missing_parts(alone.value_or("nothing thrown"), {"rank 1"}).empty());
}
