#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <tandem/testing/error_text.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"

using namespace std::chrono_literals;
using tandem::testing::TemporaryDirectory;
using tandem::testing::thrown_text;

// What groups rely on in the stores of LibTorch, whichever version it is.

namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// Not through a subclass, whose `set` hides this one.
void set_text(
    c10d::Store& store,
    const std::string& key,
    const std::string& value) {
  store.set(key, value);
}

/// A store on a port that the kernel chose.
c10::intrusive_ptr<c10d::TCPStore> serve_store() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

c10::intrusive_ptr<c10d::TCPStore> join_store(uint16_t port) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

void check_documented_values(c10d::Store& store) {
  set_text(store, "key", "value");
  CHECK(store.get_to_str("key") == "value");
  set_text(store, "key", "other");
  CHECK(store.get_to_str("key") == "other");
  CHECK(store.add("counter", 3) == 3);
  CHECK(store.add("counter", -1) == 2);
  CHECK(store.get_to_str("counter") == "2");
  CHECK(store.check({"key", "counter"}));
  CHECK_FALSE(store.check({"key", "absent"}));
  CHECK_NOTHROW(store.wait({"key", "counter"}, 1s));
  // Sets if what was expected is there, or if nothing was and is.
  CHECK(store.compareSet("new", "", "first") == "first");
  CHECK(store.compareSet("new", "wrong", "second") == "first");
  CHECK(store.compareSet("new", "first", "second") == "second");
  CHECK(store.get_to_str("new") == "second");
  const auto num_keys = store.getNumKeys();
  CHECK(store.deleteKey("key"));
  CHECK_FALSE(store.check({"key"}));
  CHECK(store.getNumKeys() <= num_keys);
}

void check_adds(const std::vector<StorePtr>& clients) {
  constexpr int num_adds = 1000;
  std::vector<std::future<void>> adders;
  for (const auto& client : clients) {
    adders.push_back(std::async(std::launch::async, [client] {
      for (int i = 0; i < num_adds; ++i) {
        client->add("total", 1);
      }
    }));
  }
  for (auto& adder : adders) {
    adder.get();
  }
  const auto expected = static_cast<int64_t>(clients.size()) * num_adds + 1;
  CHECK(clients.front()->add("total", 1) == expected);
}

} // namespace

TEST_CASE("stores keep what they document", "[comm][ST-01]") {
  const TemporaryDirectory directory;
  c10d::HashStore in_process;
  check_documented_values(in_process);
  c10d::FileStore in_file((directory.path() / "store").string(), 1);
  check_documented_values(in_file);
  check_documented_values(*serve_store());
}

TEST_CASE("16 clients add 1000 times each without a loss", "[comm][ST-02]") {
  constexpr int num_clients = 16;
  const auto served = serve_store();
  std::vector<StorePtr> over_tcp;
  for (int i = 0; i < num_clients; ++i) {
    over_tcp.emplace_back(join_store(served->getPort()));
  }
  check_adds(over_tcp);
  check_adds(std::vector<StorePtr>(
      num_clients,
      c10::make_intrusive<c10d::HashStore>()));
}

TEST_CASE(
    "a store's wait for a missing key ends at its limit",
    "[comm][ST-03]") {
  const TemporaryDirectory directory;
  const std::vector<StorePtr> stores{
      c10::make_intrusive<c10d::HashStore>(),
      c10::make_intrusive<c10d::FileStore>(
          (directory.path() / "store").string(),
          1),
      serve_store()};
  for (const auto& store : stores) {
    store->setTimeout(100ms);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(thrown_text<std::exception>([&] { store->get("absent"); }));
    const auto waited = std::chrono::steady_clock::now() - begin;
    CHECK(waited >= 100ms);
    CHECK(waited < 10s);
  }
}

TEST_CASE("a store's get fails when its server goes", "[comm][ST-03]") {
  auto served = serve_store();
  const auto client = join_store(served->getPort());
  client->setTimeout(20s);
  auto getting = std::async(std::launch::async, [&client] {
    set_text(*client, "asked", "1");
    return thrown_text<c10::DistNetworkError>([&] { client->get("absent"); });
  });
  served->wait({"asked"}, 20s);
  const auto begin = std::chrono::steady_clock::now();
  served.reset();
  CHECK(getting.get().has_value());
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
}
