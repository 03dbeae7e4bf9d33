// SIGUSR1 writes the flight records of a process.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/comm/backend.h>
#include <tandem/comm/diagnostics.h>
#include <tandem/comm/process_group.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::TemporaryDirectory;

namespace {

volatile std::sig_atomic_t num_own_calls = 0;

void count_call(int) {
  num_own_calls = num_own_calls + 1;
}

/// This process's action for SIGUSR1 while it lives.
class OwnHandler {
 public:
  OwnHandler() {
    struct sigaction action {};
    action.sa_handler = count_call;
    ::sigaction(SIGUSR1, &action, &previous_);
  }
  ~OwnHandler() {
    ::sigaction(SIGUSR1, &previous_, nullptr);
  }
  OwnHandler(const OwnHandler&) = delete;
  OwnHandler& operator=(const OwnHandler&) = delete;

 private:
  struct sigaction previous_ {};
};

bool handles_with_own() {
  struct sigaction current {};
  ::sigaction(SIGUSR1, nullptr, &current);
  return current.sa_handler == count_call;
}

std::shared_ptr<comm::ProcessGroup> recorded_group(
    const std::filesystem::path& folder) {
  comm::BackendRequest request;
  request.diagnostics = comm::Diagnostics().flight_dir(folder.string());
  return comm::connect_group(request);
}

/// Waits for a file, at most ten seconds.
bool has_file(const std::filesystem::path& folder) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() == ".json") {
        return true;
      }
    }
    std::this_thread::yield();
  }
  return false;
}

} // namespace

TEST_CASE("SIGUSR1 writes records and calls the handler before", "[comm]") {
  const OwnHandler handler;
  num_own_calls = 0;
  for (int round = 1; round <= 2; ++round) {
    const TemporaryDirectory folder;
    auto group = recorded_group(folder.path());
    CHECK_FALSE(handles_with_own());
    ::raise(SIGUSR1);
    CHECK(num_own_calls == round);
    CHECK(has_file(folder.path()));
    group.reset();
    CHECK(handles_with_own());
  }
}

TEST_CASE("SIGUSR1 is left alone where nothing is recorded", "[comm]") {
  const OwnHandler handler;
  comm::BackendRequest request;
  request.diagnostics = comm::Diagnostics();
  const auto group = comm::connect_group(request);
  CHECK(handles_with_own());
}
