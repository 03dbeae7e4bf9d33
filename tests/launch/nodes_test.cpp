#include "tandem_catch.h"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <tandem/testing/temporary_directory.h>

#include "../comm/unused_port.h"
#include "child_process.h"
#include "launch/sockets.h"
#include "launched.h"
#include "network_namespaces.h"

namespace {

using Catch::Matchers::ContainsSubstring;
using tandem::test::ChildProcess;
using tandem::test::count_of;
using tandem::test::NetworkNamespaces;
using tandem::test::ProcessHandle;
using tandem::test::rank_program;
using Words = std::vector<std::string>;
using namespace std::chrono_literals;

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The words that start one launcher of several.
Words node_words(
    int node_rank,
    const Words& options,
    const Words& command,
    const std::string& num_ranks = "1") {
  return joined(
      joined(
          {TANDEM_PROGRAM,
           "launch",
           "-n",
           num_ranks,
           "--node-rank",
           std::to_string(node_rank)},
          options),
      joined({"--"}, command));
}

// Options of two launchers that meet over the loopback interface.
Words two_nodes(const Words& more = {}) {
  return joined(
      {"--nnodes",
       "2",
       "--master-addr",
       "127.0.0.1",
       "--master-port",
       tandem::test::unused_port()},
      more);
}

// Both launchers of `command`.
struct TwoNodes {
  TwoNodes(const Words& options, const Words& command)
      : nodes{
            std::make_unique<ChildProcess>(node_words(0, options, command)),
            std::make_unique<ChildProcess>(node_words(1, options, command))} {}

  ChildProcess& operator[](std::size_t rank) {
    return *nodes[rank];
  }
  // Of the lines "ready <pid>" of both.
  std::vector<ProcessHandle> ready_ranks() {
    std::vector<ProcessHandle> handles;
    for (auto& node : nodes) {
      node->read_until([&] { return count_of("ready ", node->out()) == 1; });
      handles.emplace_back(
          tandem::test::numbers_after("ready ", node->out()).front());
    }
    return handles;
  }

  std::array<std::unique_ptr<ChildProcess>, 2> nodes;
};

void check_gone(const std::vector<ProcessHandle>& handles) {
  for (const auto& handle : handles) {
    CHECK(handle.gone_within(2s));
  }
}

} // namespace

TEST_CASE(
    "tandem launch lets the ranks of two nodes meet, with torchrun's variables",
    "[launch]") {
  const auto options = two_nodes();
  const Words command{
      "bash",
      "-c",
      "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE "
      "$GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_ADDR; exec '" TANDEM_RANK_PROGRAM
      "' meet"};
  ChildProcess one(node_words(1, options, command, "1"));
  ChildProcess zero(node_words(0, options, command, "2"));
  CHECK(zero.wait() == 0);
  CHECK(one.wait() == 0);
  CHECK_THAT(
      zero.out(),
      ContainsSubstring("[rank 0] 0/3 0/2 0/2 127.0.0.1\n") &&
          ContainsSubstring("[rank 1] 1/3 1/2 0/2 127.0.0.1\n"));
  CHECK_THAT(one.out(), ContainsSubstring("[rank 2] 2/3 0/1 1/2 127.0.0.1\n"));
  CHECK(count_of("sum 6 of 3\n", zero.out() + one.out()) == 3);
}

TEST_CASE(
    "tandem launch ends all nodes with the code of the first failure",
    "[launch]") {
  for (const std::string failing : {"0", "1"}) {
    const auto options = two_nodes();
    TwoNodes nodes(
        options,
        rank_program({"meet", failing + ":exit=7", "ready", "hang"}));
    for (const std::size_t node : {0, 1}) {
      CHECK(nodes[node].wait() == 7);
      CHECK_THAT(
          nodes[node].err(),
          ContainsSubstring("[launch] rank " + failing + " (node ") &&
              ContainsSubstring("(node " + failing + ", pid ") &&
              ContainsSubstring("exited with code 7"));
    }
  }
}

TEST_CASE("tandem launch starts the ranks of all nodes again", "[launch]") {
  TwoNodes nodes(
      two_nodes({"--max-restarts", "2"}),
      rank_program(
          {"meet",
           "@0:1:die=9",
           "@1:0:throw=bad",
           "@0:hang",
           "@1:hang",
           "say=done"}));
  for (const std::size_t node : {0, 1}) {
    CHECK(nodes[node].wait() == 0);
    CHECK(count_of("sum 3 of 2\n", nodes[node].out()) == 3);
    CHECK(count_of("done\n", nodes[node].out()) == 1);
    CHECK(count_of("all ranks start again", nodes[node].err()) == 2);
    CHECK_THAT(
        nodes[node].err(),
        ContainsSubstring("[launch] | ConfigError: bad\n") &&
            ContainsSubstring("[launch] succeeded at restart 2\n"));
  }
}

TEST_CASE(
    "tandem launch returns the first cause on all nodes when none is left",
    "[launch]") {
  TwoNodes nodes(
      two_nodes({"--max-restarts", "1"}),
      rank_program({"meet", "@0:1:exit=3", "@1:0:exit=4", "hang"}));
  for (const std::size_t node : {0, 1}) {
    CHECK(nodes[node].wait() == 3);
    CHECK_THAT(
        nodes[node].err(),
        ContainsSubstring("gave up after 1 of 1 restarts"));
  }
}

TEST_CASE(
    "tandem launch ends its ranks when another node's launcher was killed",
    "[launch]") {
  for (const std::size_t killed : {0, 1}) {
    TwoNodes nodes(
        two_nodes({"--max-restarts", "3"}),
        rank_program({"ready", "hang"}));
    const auto ranks = nodes.ready_ranks();
    nodes[killed].signal(SIGKILL);
    auto& other = nodes[1 - killed];
    CHECK(other.wait(10s) == 1);
    CHECK_THAT(
        other.err(),
        ContainsSubstring("[launch] node " + std::to_string(killed)) &&
            ContainsSubstring("closed"));
    check_gone(ranks);
  }
}

TEST_CASE(
    "tandem launch gives a node up that has been silent for too long",
    "[launch]") {
  TwoNodes nodes(
      two_nodes({"--node-timeout", "2"}),
      rank_program({"ready", "hang"}));
  auto ranks = nodes.ready_ranks();
  nodes[1].signal(SIGSTOP);
  CHECK(nodes[0].wait(10s) == 1);
  CHECK_THAT(nodes[0].err(), ContainsSubstring("nothing for 2 s"));
  nodes[1].signal(SIGCONT);
  CHECK(nodes[1].wait(10s) == 1);
  check_gone(ranks);
}

TEST_CASE("tandem launch forwards an interrupt to all nodes", "[launch]") {
  for (const std::size_t interrupted : {0, 1}) {
    TwoNodes nodes(
        two_nodes(),
        {"bash",
         "-c",
         "trap 'echo saved; exit 0' INT; echo ready $$; "
         "while :; do sleep 0.05; done"});
    const auto ranks = nodes.ready_ranks();
    nodes[interrupted].signal(SIGINT);
    for (const std::size_t node : {0, 1}) {
      CHECK(nodes[node].wait(10s) == 0);
      CHECK(count_of("saved\n", nodes[node].out()) == 1);
      CHECK_THAT(nodes[node].err(), ContainsSubstring("interrupted by SIGINT"));
    }
    check_gone(ranks);
  }
}

TEST_CASE(
    "tandem launch takes one signal to all nodes for the first, not the second",
    "[launch]") {
  TwoNodes nodes(
      two_nodes(),
      {"bash",
       "-c",
       "trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready $$; "
       "while :; do sleep 0.05; done"});
  const auto ranks = nodes.ready_ranks();
  for (const std::size_t node : {0, 1}) {
    nodes[node].signal(SIGTERM);
  }
  for (const std::size_t node : {0, 1}) {
    CHECK(nodes[node].wait(10s) == 0);
    CHECK(count_of("saved\n", nodes[node].out()) == 1);
  }
}

TEST_CASE(
    "tandem launch waits for other nodes no longer than told",
    "[launch]") {
  const auto options = two_nodes({"--meet-timeout", "1"});
  for (const int present : {0, 1}) {
    ChildProcess alone(node_words(present, options, {"echo", "started"}));
    CHECK(alone.wait(10s) == 1);
    CHECK(alone.out().empty());
    CHECK_THAT(
        alone.err(),
        ContainsSubstring(
            "[launch] node " + std::to_string(1 - present) + " ") ||
            ContainsSubstring(
                "[launch] node " + std::to_string(1 - present) + ":"));
    CHECK_THAT(alone.err(), ContainsSubstring("within 1 s"));
  }
}

TEST_CASE("tandem launch can be interrupted while it waits", "[launch]") {
  const Words command{"echo", "started"};
  ChildProcess zero(node_words(0, two_nodes(), command));
  ChildProcess one(node_words(1, two_nodes(), command));
  for (auto* alone : {&zero, &one}) {
    alone->read_until([&] { return count_of("waits ", alone->err()) == 1; });
    alone->signal(SIGINT);
    CHECK(alone->wait(5s) == 128 + SIGINT);
    CHECK(alone->out().empty());
  }
  CHECK_THAT(
      zero.err(),
      ContainsSubstring("[launch] node 0 waits at 127.0.0.1 port ") &&
          ContainsSubstring(" for node 1; no other host can reach"));
  CHECK_THAT(
      one.err(),
      ContainsSubstring("[launch] waits for node 0 at 127.0.0.1 port ") &&
          ContainsSubstring("(Connection refused)"));
}

TEST_CASE("tandem launch refuses a node that does not belong", "[launch]") {
  const auto options = two_nodes();
  ChildProcess zero(node_words(0, options, rank_program({"ready", "hang"})));
  const auto refused = [&](const Words& words, const std::string& part) {
    ChildProcess other(words);
    CHECK(other.wait(10s) == 2);
    CHECK_THAT(
        other.err(),
        ContainsSubstring("refused by node 0") && ContainsSubstring(part));
  };
  const Words nothing{"true"};
  refused(
      node_words(1, joined(options, {"--max-restarts", "1"}), nothing),
      "got 1");
  auto three = options;
  three[1] = "3";
  refused(node_words(2, three, nothing), "got 3");
  ChildProcess one(node_words(1, options, rank_program({"ready", "hang"})));
  one.read_until([&] { return count_of("ready", one.out()) == 1; });
  refused(node_words(1, options, nothing), "got another");
  zero.signal(SIGTERM);
  CHECK(zero.wait(10s) == 128 + SIGTERM);
  CHECK(one.wait(10s) == 128 + SIGTERM);
}

TEST_CASE("tandem launch heeds no stranger on its port", "[launch]") {
  using namespace tandem::comm::launch;
  const auto options = two_nodes();
  const auto port = static_cast<uint16_t>(std::stoi(options[5]));
  ChildProcess zero(node_words(0, options, rank_program({"meet"})));
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  std::vector<FileDescriptor> strangers;
  std::string why;
  while (strangers.size() < 100 &&
         std::chrono::steady_clock::now() < deadline) {
    auto stranger = connect_to("127.0.0.1", port, 100ms, why);
    if (!stranger) {
      continue; // it does not listen yet
    }
    const auto number = strangers.size();
    const std::string text = number % 4 == 0 ? "GET / HTTP/1.1\r\n\r\n"
        : number % 4 == 1                    ? std::string(9000, 'x')
        : number % 4 == 2 ? "{\"type\": \"hello\", \"node_rank\": \"x\"}\n"
                          : ""; // says nothing and stays
    CHECK(::write(stranger.get(), text.data(), text.size()) >= 0);
    strangers.push_back(std::move(stranger));
  }
  CHECK(strangers.size() == 100);
  ChildProcess one(node_words(1, options, rank_program({"meet"})));
  CHECK(zero.wait() == 0);
  CHECK(one.wait() == 0);
}

TEST_CASE(
    "tandem launch tells all nodes of one that cannot run the program",
    "[launch]") {
  const tandem::testing::TemporaryDirectory folder;
  const auto script = (folder.path() / "script").string();
  std::ofstream(script) << "#!/no/such/shell\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string missing = "/no/such/program";
  for (const int node : {0, 1}) {
    for (const auto& path : {script, missing}) {
      const auto options = two_nodes();
      const auto hangs = rank_program({"hang"});
      ChildProcess other(node_words(1 - node, options, hangs));
      ChildProcess failing(node_words(node, options, {path}));
      CHECK(failing.wait(10s) == 127);
      CHECK(other.wait(10s) == 1);
      CHECK_THAT(
          other.err(),
          ContainsSubstring("[launch] node " + std::to_string(node)) &&
              ContainsSubstring(path));
    }
  }
}

TEST_CASE(
    "tandem launch joins two hosts, and ends both when their link is cut",
    "[launch]") {
  const NetworkNamespaces hosts;
  if (!hosts.why_not().empty()) {
    TANDEM_SKIP("no network namespaces: " + hosts.why_not());
  }
  const Words options{
      "--nnodes",
      "2",
      "--master-addr",
      hosts.address(0),
      "--node-timeout",
      "3"};
  const Words command = joined(
      {"env", "GLOO_SOCKET_IFNAME=" + hosts.interface_name()},
      rank_program({"meet", "ready", "hang"}));
  ChildProcess zero(hosts.on_host(0, node_words(0, options, command)));
  ChildProcess one(hosts.on_host(1, node_words(1, options, command)));
  std::vector<ProcessHandle> ranks;
  for (auto* node : {&zero, &one}) {
    node->read_until([&] { return count_of("ready ", node->out()) == 1; });
    CHECK_THAT(node->out(), ContainsSubstring("sum 3 of 2\n"));
    ranks.emplace_back(
        tandem::test::numbers_after("ready ", node->out()).front());
  }
  hosts.cut_link();
  for (auto* node : {&zero, &one}) {
    CHECK(node->wait(15s) == 1);
    CHECK_THAT(node->err(), ContainsSubstring("nothing for 3 s"));
  }
  check_gone(ranks);
}
