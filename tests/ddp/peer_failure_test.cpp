// A rank that dies, stops, fails or stays away while the others are in
// backward.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/comm/comm.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using namespace std::chrono_literals;
using testing::missing_parts;
using testing::RankOutcome;
using testing::RankProcess;
using testing::RunProcessesOptions;
using testing::try_processes;

/// What happens where backward comes to it.
std::function<void()> trap;

struct Trapped : torch::autograd::Function<Trapped> {
  static at::Tensor forward(
      torch::autograd::AutogradContext*,
      const at::Tensor& input) {
    return input.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*,
      const torch::autograd::variable_list& gradients) {
    if (trap) {
      trap();
    }
    return gradients;
  }
};

/// Backward comes to the trap before it reaches the left tower.
struct TrapImpl : torch::nn::Module {
  TrapImpl() : towers(register_module("towers", Towers())) {}
  at::Tensor forward(const at::Tensor& input) {
    return Trapped::apply(towers->left(input)) + towers->right(input);
  }
  Towers towers;
};
TORCH_MODULE(Trap);

Options small_buckets() {
  return Options().first_bucket_bytes(1).bucket_cap_bytes(1);
}

std::function<void()> end_of(const std::string& way) {
  if (way == "SIGKILL") {
    return [] { ::raise(SIGKILL); };
  }
  if (way == "abort") {
    return [] {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      std::abort();
    };
  }
  if (way == "throw") {
    return [] { throw std::out_of_range("wonderful"); };
  }
  return [way] { std::exit(way == "exit 0" ? 0 : 1); };
}

/// Runs a backward; where it throws, says first how long it took.
void timed_backward(const RankProcess& process, at::Tensor loss) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    loss.backward();
  } catch (...) {
    const std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - begin;
    process.doing(fmt::format("{}", taken.count()));
    throw;
  }
}

/// What `timed_backward` said.
double seconds_of(const RankOutcome& outcome) {
  char* end = nullptr;
  const auto seconds = std::strtod(outcome.last_doing.c_str(), &end);
  return end == outcome.last_doing.c_str()
      ? std::numeric_limits<double>::infinity()
      : seconds;
}

TANDEM_RANK_FUNCTION(last_rank_ends_in_backward) {
  comm::init_process_group();
  Trap net;
  DistributedDataParallel model(net, small_buckets());
  const auto input = torch::ones({1}, at::kDouble);
  model(input).backward();
  if (process.rank() + 1 == process.world_size()) {
    trap = end_of(process.argument());
  }
  const auto loss = model(input);
  comm::barrier();
  timed_backward(process, loss);
  return {};
}

void check_survivors(
    int64_t world_size,
    const std::string& way,
    const std::function<void(const RankOutcome&)>& check_last) {
  CAPTURE(way);
  const auto outcomes = try_processes(
      world_size,
      "last_rank_ends_in_backward",
      RunProcessesOptions().argument(way));
  check_last(outcomes.back());
  const auto dead = fmt::format("no answer from rank {} (", world_size - 1);
  for (size_t rank = 0; rank + 1 < outcomes.size(); ++rank) {
    const auto& survivor = outcomes[rank];
    CAPTURE(rank, survivor.error, survivor.last_doing);
    CHECK(survivor.status.code == 1);
    CHECK(seconds_of(survivor) < 2);
    CHECK(missing_parts(
              survivor.error,
              {dead,
               "all-reduce of gradient bucket 1 of 2 ('towers.",
               fmt::format("rank {}", rank)})
              .empty());
  }
}

void check_all_ends(int64_t world_size) {
  check_survivors(world_size, "SIGKILL", [](const RankOutcome& last) {
    CHECK(last.status.signal == SIGKILL);
  });
  check_survivors(world_size, "abort", [](const RankOutcome& last) {
    CHECK(last.status.signal == SIGABRT);
  });
  check_survivors(world_size, "exit 0", [](const RankOutcome& last) {
    CHECK(last.status.success());
  });
  check_survivors(world_size, "exit 1", [](const RankOutcome& last) {
    CHECK(last.status.code == 1);
  });
}

TEST_CASE(
    "a rank that dies in backward is named by the other one",
    "[ddp][processes][FT-01]") {
  check_all_ends(2);
}

TEST_CASE(
    "a rank that dies in backward is named by the other two",
    "[ddp][processes][FT-01]") {
  check_all_ends(3);
}

TEST_CASE(
    "a rank whose backward throws keeps its error and ends the others",
    "[ddp][processes][FT-13]") {
  check_survivors(2, "throw", [](const RankOutcome& last) {
    CHECK(last.status.code == 1);
    CHECK(contains(last.error, "wonderful"));
  });
}

bool is_stopped(int64_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string number;
  std::string name;
  std::string state;
  stat >> number >> name >> state;
  return state == "T";
}

/// The other rank's process, once it has stopped.
pid_t await_stopped_peer(c10d::Store& store) {
  const auto pid = std::stoll(store.get_to_str("pid"));
  while (!is_stopped(pid)) {
    std::this_thread::yield();
  }
  return static_cast<pid_t>(pid);
}

TANDEM_RANK_FUNCTION(second_rank_stops_in_backward) {
  const auto group =
      comm::init_process_group(comm::ProcessGroupOptions().timeout(3s));
  Trap net;
  DistributedDataParallel model(net, small_buckets());
  const auto loss =
      model(torch::full({1}, static_cast<double>(process.rank()), at::kDouble));
  if (process.rank() == 1) {
    group->store()->set("pid", std::to_string(::getpid()));
    trap = [] { ::raise(SIGSTOP); };
    loss.backward();
    return {{{"gradient", net->towers->left->weight.grad()}}, ""};
  }
  const auto peer = await_stopped_peer(*group->store());
  std::thread waker;
  if (process.argument() == "woken") {
    waker = std::thread([peer] {
      std::this_thread::sleep_for(1s); // what the case asks for
      ::kill(peer, SIGCONT);
    });
  }
  try {
    timed_backward(process, loss);
  } catch (...) {
    ::kill(peer, SIGKILL);
    throw;
  }
  waker.join();
  return {{{"gradient", net->towers->left->weight.grad()}}, ""};
}

TEST_CASE(
    "a rank that stops for good ends the other at the time limit",
    "[ddp][processes][FT-02]") {
  const auto outcomes = try_processes(2, "second_rank_stops_in_backward");
  const auto& other = outcomes[0];
  CAPTURE(other.error, other.last_doing);
  CHECK(other.status.code == 1);
  CHECK(seconds_of(other) >= 2.9);
  CHECK(seconds_of(other) < 5);
  CHECK(missing_parts(
            other.error,
            {"no answer from rank 1 (",
             "all-reduce of gradient bucket 1 of 2 ('towers.",
             "rank 0 was at"})
            .empty());
}

TEST_CASE(
    "a rank that stops for a second delays the others",
    "[ddp][processes][FT-02]") {
  const auto outcomes = try_processes(
      2,
      "second_rank_stops_in_backward",
      RunProcessesOptions().argument("woken"));
  for (const auto& outcome : outcomes) {
    CAPTURE(outcome.error);
    REQUIRE(outcome.success());
    CHECK(outcome.result->tensors.at("gradient").item<double>() == 0.5);
  }
}

TEST_CASE("a rank without a backward is named by the others", "[ddp][FT-04]") {
  const auto errors = try_ranks(
      2,
      [](RankContext& context) {
        Towers net;
        DistributedDataParallel model(net, small_buckets());
        const auto [left, right] = model(torch::ones({1}, at::kDouble));
        if (context.rank() == 0) {
          (left + right).backward();
        }
      },
      testing::RunRanksOptions().timeout(500ms));
  CHECK(is<TimeoutError>(errors[0]));
  CHECK(missing_parts(
            text_of(errors[0]),
            {"all-reduce of gradient bucket 1 of 2 ('right.weight')",
             "within 500 ms",
             "no answer from rank 1 (",
             "rank 0 was at all-reduce of gradient bucket 1 of 2 "
             "('right.weight') (collective ",
             "all-reduce (sum) of Double [1])"})
            .empty());
  CHECK_FALSE(errors[1]);
}

} // namespace
} // namespace tandem::test
