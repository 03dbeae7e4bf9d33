#include <tandem/comm/comm.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"
#include "unused_port.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::test::unused_port;
using tandem::testing::missing_parts;
using tandem::testing::run_processes;
using tandem::testing::RunProcessesOptions;
using tandem::testing::TemporaryDirectory;
using tandem::testing::thrown_text;

namespace {

/// Rank 0 hosts the store, at `port`.
RunProcessesOptions hosted_by_rank0(const std::string& port) {
  return RunProcessesOptions().environment(
      {{"TORCHELASTIC_USE_AGENT_STORE", "False"}, {"MASTER_PORT", port}});
}

/// A connection to `address` at MASTER_PORT, or -1 and errno.
int connect_to(const char* address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port =
      htons(static_cast<uint16_t>(std::stoi(std::getenv("MASTER_PORT"))));
  ::inet_pton(AF_INET, address, &place.sin_addr);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0) {
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

int connect_when_listening() {
  for (;;) { // the deadline of the ranks ends it
    const int fd = connect_to("127.0.0.1");
    if (fd >= 0 || errno != ECONNREFUSED) {
      return fd;
    }
    std::this_thread::sleep_for(20ms);
  }
}

/// Opens `num_connections`, one after the other, and sends random bytes, from
/// none to 4 KiB, over each; every fourth stays open. Returns how many it
/// could open.
int64_t send_garbage(int num_connections, std::mt19937& generator) {
  constexpr size_t max_bytes = 4096;
  constexpr int kept_open = 4;
  std::uniform_int_distribution<int> byte(0, UINT8_MAX);
  std::uniform_int_distribution<size_t> size(0, max_bytes);
  int64_t num_opened = 0;
  for (int i = 0; i < num_connections; ++i) {
    std::string garbage(size(generator), '\0');
    for (auto& character : garbage) {
      character = static_cast<char>(byte(generator));
    }
    const int fd = connect_when_listening();
    if (fd < 0) {
      continue;
    }
    ++num_opened;
    ::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    if (i % kept_open != 0) {
      ::close(fd);
    }
  }
  return num_opened;
}

TANDEM_RANK_FUNCTION(meets_amid_garbage) {
  constexpr int num_connections = 500;
  // NOLINTNEXTLINE(bugprone-random-generator-seed): the same in every run
  std::mt19937 generator(7);
  int64_t num_opened = 0;
  const auto disturb = [&] {
    if (process.rank() == 1) {
      num_opened += send_garbage(num_connections, generator);
    }
  };
  disturb();
  comm::init_process_group();
  disturb();
  comm::barrier();
  auto& store = *comm::default_group()->store();
  store.set("key/" + std::to_string(process.rank()), "value");
  const auto peer_value =
      store.get_to_str("key/" + std::to_string(1 - process.rank()));
  // Keeps the server for the group made again.
  const auto first = comm::default_group();
  comm::destroy_process_group();
  comm::init_process_group();
  auto sum = torch::full({3}, process.rank() + 1);
  comm::all_reduce(sum);
  comm::barrier();
  return {{{"sum", sum}, {"opened", torch::tensor(num_opened)}}, peer_value};
}

TANDEM_RANK_FUNCTION(tries_other_addresses) {
  comm::init_process_group();
  const auto state_of = [](const char* address) {
    const int fd = connect_to(address);
    const int error = errno;
    if (fd >= 0) {
      ::close(fd);
    }
    return fd >= 0 ? int64_t{0} : int64_t{error};
  };
  const auto states =
      torch::tensor({state_of("127.0.0.1"), state_of("127.0.0.2")});
  comm::barrier();
  return {{{"states", states}}, ""};
}

/// Rank 2 of the three processes is of another job and takes itself for rank
/// 1; the real one comes once that has been turned away.
TANDEM_RANK_FUNCTION(meets_beside_another_job) {
  const auto rank = process.rank() == 2 ? "1" : std::to_string(process.rank());
  ::setenv("RANK", rank.c_str(), 1);
  ::setenv("LOCAL_RANK", rank.c_str(), 1);
  ::setenv("TANDEM_JOB_ID", process.rank() == 2 ? "their-job" : "our-job", 1);
  const auto& turned_away = process.argument();
  if (process.rank() == 2) {
    auto text =
        thrown_text<tandem::ConfigError>([] { comm::init_process_group(); });
    ::close(::open(turned_away.c_str(), O_CREAT | O_WRONLY, 0600));
    return {{}, text.value_or("nothing thrown")};
  }
  while (process.rank() == 1 && ::access(turned_away.c_str(), F_OK) != 0) {
    std::this_thread::sleep_for(10ms); // the deadline of the ranks ends it
  }
  comm::init_process_group();
  auto sum = torch::full({1}, comm::rank() + 1);
  comm::all_reduce(sum);
  comm::barrier();
  return {{{"sum", sum}}, ""};
}

} // namespace

TEST_CASE(
    "a store that rank 0 hosts listens only at MASTER_ADDR",
    "[comm][processes]") {
  for (const auto& result : run_processes(
           2,
           "tries_other_addresses",
           hosted_by_rank0(unused_port()))) {
    CHECK(at::equal(
        result.tensors.at("states"),
        torch::tensor({int64_t{0}, int64_t{ECONNREFUSED}})));
  }
}

TEST_CASE(
    "a store that rank 0 hosts is not harmed by 1000 random connections",
    "[comm][processes]") {
  const auto results =
      run_processes(2, "meets_amid_garbage", hosted_by_rank0(unused_port()));
  for (const auto& result : results) {
    CHECK(at::equal(result.tensors.at("sum"), torch::full({3}, 3)));
    CHECK(result.text == "value");
  }
  CHECK(results[1].tensors.at("opened").item<int64_t>() == 1000);
}

TEST_CASE(
    "a rank of another job is turned away and takes nobody's place",
    "[comm][processes][ENV-01]") {
  const TemporaryDirectory directory;
  auto options = hosted_by_rank0(unused_port());
  auto environment = options.environment();
  environment["WORLD_SIZE"] = "2";
  environment["LOCAL_WORLD_SIZE"] = "2";
  const auto results = run_processes(
      3,
      "meets_beside_another_job",
      options.environment(environment)
          .argument(directory.path().string() + "/turned-away"));
  for (const auto rank : {0, 1}) {
    CHECK(results[rank].tensors.at("sum").item<int64_t>() == 3);
  }
  CHECK(missing_parts(
            results[2].text,
            {"[comm rank 1/2] TANDEM_JOB_ID: expected 'our-job'",
             "got 'their-job'"})
            .empty());
}
