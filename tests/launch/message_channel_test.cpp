#include "tandem_catch.h"

#include <array>
#include <chrono>
#include <csignal>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launch/message_channel.h"
#include "launch/node_messages.h"

namespace {

using namespace tandem::comm;
using launch::FileDescriptor;
using launch::MessageChannel;
using Json = nlohmann::json;
using namespace std::chrono_literals;

struct SocketPair {
  SocketPair() {
    std::array<int, 2> ends{};
    REQUIRE(
        ::socketpair(
            AF_UNIX,
            SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
            0,
            ends.data()) == 0);
    one = FileDescriptor(ends[0]);
    other = FileDescriptor(ends[1]);
  }
  FileDescriptor one;
  FileDescriptor other;
};

void write_text(const FileDescriptor& socket, const std::string& text) {
  CHECK(::write(socket.get(), text.data(), text.size()) >= 0);
}

MessageChannel::Time now() {
  return std::chrono::steady_clock::now();
}

RankFailure some_failure() {
  RankFailure failure;
  failure.rank = 5;
  failure.node_rank = 1;
  failure.pid = 77;
  failure.status = {0, SIGKILL};
  failure.last_lines = {"one", "two"};
  failure.error = "ConfigError: x";
  failure.time = std::chrono::system_clock::now() - 1s;
  return failure;
}

void check_same(const RankFailure& a, const RankFailure& b) {
  CHECK(a.rank == b.rank);
  CHECK(a.node_rank == b.node_rank);
  CHECK(a.pid == b.pid);
  CHECK(a.status.code == b.status.code);
  CHECK(a.status.signal == b.status.signal);
  CHECK(a.last_lines == b.last_lines);
  CHECK(a.error == b.error);
  CHECK(std::chrono::abs(a.time - b.time) < 1s);
}

} // namespace

TEST_CASE("MessageChannel hands messages over whole", "[launch]") {
  SocketPair sockets;
  MessageChannel channel(std::move(sockets.one), 10s);
  write_text(sockets.other, "{\"type\": \"a\"}\n{\"type\":");
  const auto first = channel.exchange(now());
  REQUIRE(first.size() == 1);
  CHECK(first[0]["type"] == "a");
  write_text(sockets.other, " \"b\", \"x\": 1}\n{\"type\": \"beat\"}\n");
  const auto second = channel.exchange(now());
  REQUIRE(second.size() == 1);
  CHECK(second[0]["x"] == 1);
  CHECK(channel.why_lost().empty());
}

TEST_CASE("MessageChannel sends what is no UTF-8, and a beat", "[launch]") {
  SocketPair sockets;
  MessageChannel one(std::move(sockets.one), 10s);
  MessageChannel other(std::move(sockets.other), 10s);
  one.send({{"type", "a"}, {"text", "\xff"}});
  const auto messages = other.exchange(now());
  REQUIRE(messages.size() == 1);
  CHECK(messages[0]["text"] == "\xef\xbf\xbd");
  CHECK(one.exchange(now() + 5s).empty());
  CHECK(other.exchange(now() + 9s).empty());
  CHECK(other.exchange(now() + 15s).empty());
  CHECK(other.why_lost().empty()); // the beat came 9 s from now
}

TEST_CASE("MessageChannel is lost by silence, an end or garbage", "[launch]") {
  const auto lost = [](const auto& act, bool trusted = false) {
    SocketPair sockets;
    MessageChannel channel(std::move(sockets.one), 10s);
    if (trusted) {
      channel.trust();
    }
    act(sockets.other);
    channel.exchange(now());
    if (!channel.why_lost().empty()) {
      CHECK(channel.fd() == -1);
    }
    return channel.why_lost();
  };
  using Socket = FileDescriptor;
  CHECK(lost([](Socket&) {}).empty());
  CHECK_THAT(
      lost([](Socket& socket) { socket.reset(); }),
      Catch::Matchers::ContainsSubstring("closed"));
  for (const auto* text : {"x\n", "1\n", "{}\n", "\xff\xfe\n", "\n"}) {
    CHECK_THAT(
        lost([&](Socket& socket) { write_text(socket, text); }),
        Catch::Matchers::ContainsSubstring("no message"));
  }
  const auto long_text = [](Socket& socket) {
    write_text(socket, std::string(5000, 'x'));
  };
  CHECK_THAT(lost(long_text), Catch::Matchers::ContainsSubstring("more than"));
  CHECK(lost(long_text, /*trusted=*/true).empty());
  SocketPair sockets;
  MessageChannel channel(std::move(sockets.one), 10s);
  channel.exchange(now() + 11s);
  CHECK_THAT(
      channel.why_lost(),
      Catch::Matchers::ContainsSubstring("for 10 s"));
}

TEST_CASE("the messages of launchers come out as they went in", "[launch]") {
  launch::Start start;
  start.rendezvous = {
      .num_ranks = 7,
      .num_local_ranks = 2,
      .first_rank = 5,
      .node_rank = 1,
      .num_nodes = 2,
      .address = "host",
      .port = 4567,
      .run_id = "id",
      .attempt = 3,
      .max_restarts = 4};
  start.failures = {some_failure()};
  const auto read = launch::read_start(launch::to_message(start));
  CHECK(read.rendezvous.num_ranks == 7);
  CHECK(read.rendezvous.num_local_ranks == 2);
  CHECK(read.rendezvous.first_rank == 5);
  CHECK(read.rendezvous.node_rank == 1);
  CHECK(read.rendezvous.num_nodes == 2);
  CHECK(read.rendezvous.address == "host");
  CHECK(read.rendezvous.port == 4567);
  CHECK(read.rendezvous.run_id == "id");
  CHECK(read.rendezvous.attempt == 3);
  CHECK(read.rendezvous.max_restarts == 4);
  REQUIRE(read.failures.size() == 1);
  check_same(read.failures[0], some_failure());

  launch::AttemptEnd end;
  end.failures = {some_failure()};
  end.interrupted_by = SIGTERM;
  end.clean = false;
  const auto read_end = launch::read_end(launch::to_message(end));
  CHECK(read_end.interrupted_by == SIGTERM);
  CHECK_FALSE(read_end.clean);
  check_same(read_end.failures.at(0), some_failure());

  launch::Finish finish;
  finish.result.exit_code = 137;
  finish.result.causes = {some_failure()};
  finish.result.first_failure = some_failure();
  finish.result.node_failure = "node 1";
  finish.failures = {some_failure()};
  const auto read_finish = launch::read_finish(launch::to_message(finish));
  CHECK(read_finish.result.exit_code == 137);
  CHECK(read_finish.result.node_failure == "node 1");
  CHECK(read_finish.result.causes.size() == 1);
  check_same(read_finish.result.first_failure.value(), some_failure());
  check_same(read_finish.failures.at(0), some_failure());

  CHECK_THROWS_AS(launch::read_end(Json{{"type", "end"}}), Json::exception);
}
