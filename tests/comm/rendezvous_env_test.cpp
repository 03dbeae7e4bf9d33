#include <tandem/comm/rendezvous_env.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>

#include "tandem_catch.h"

using tandem::comm::parse_rendezvous_env;
using tandem::comm::RendezvousEnv;
using tandem::testing::missing_parts;
using tandem::testing::thrown_text;

namespace {

/// Variables over those of rank 1 of 4 on two hosts; no value: not set.
using Changes = std::map<std::string, std::optional<std::string>>;

Changes two_host_variables() {
  return {
      {"RANK", "1"},
      {"WORLD_SIZE", "4"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "node0.example"},
      {"MASTER_PORT", "29500"},
  };
}

RendezvousEnv parse_changed(
    const Changes& changes,
    std::optional<int64_t> visible_devices = std::nullopt) {
  auto variables = two_host_variables();
  for (const auto& [name, value] : changes) {
    variables[name] = value;
  }
  return parse_rendezvous_env(
      [&](const std::string& name) { return variables[name]; },
      visible_devices);
}

struct BadValue {
  Changes changes;
  std::string variable;
  /// How the message shows the value.
  std::string shown;
};

std::vector<BadValue> bad_numbers() {
  const std::vector<std::pair<std::optional<std::string>, std::string>> texts{
      {std::nullopt, "not set"},
      {"", "''"},
      {" ", "' '"},
      {" 1", "' 1'"},
      {"1 ", "'1 '"},
      {"+1", "'+1'"},
      {"-1", "'-1'"},
      {"1.0", "'1.0'"},
      {"0x1", "'0x1'"},
      {"1e3", "'1e3'"},
      {"2147483648", "'2147483648'"},
      {"18446744073709551616", "'18446744073709551616'"},
      {"１", "'１'"},
      {"1\n", "'1\\x0a'"},
      {"one", "'one'"},
  };
  std::vector<BadValue> cases;
  for (const auto* variable :
       {"RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_PORT"}) {
    for (const auto& [text, shown] : texts) {
      cases.push_back({{{variable, text}}, variable, shown});
    }
  }
  return cases;
}

std::vector<BadValue> bad_combinations() {
  return {
      {{{"RANK", "4"}}, "RANK", "'4'"},
      {{{"RANK", "5"}}, "RANK", "'5'"},
      {{{"WORLD_SIZE", "0"}}, "WORLD_SIZE", "'0'"},
      {{{"LOCAL_WORLD_SIZE", "0"}}, "LOCAL_WORLD_SIZE", "'0'"},
      {{{"LOCAL_WORLD_SIZE", "5"}}, "LOCAL_WORLD_SIZE", "'5'"},
      {{{"LOCAL_RANK", "2"}}, "LOCAL_RANK", "'2'"},
      {{{"MASTER_PORT", "0"}}, "MASTER_PORT", "'0'"},
      {{{"MASTER_PORT", "65536"}}, "MASTER_PORT", "'65536'"},
      {{{"MASTER_ADDR", std::nullopt}}, "MASTER_ADDR", "not set"},
      {{{"MASTER_ADDR", ""}}, "MASTER_ADDR", "''"},
      {{{"MASTER_ADDR", "node 0"}}, "MASTER_ADDR", "'node 0'"},
      {{{"MASTER_ADDR", "node0\n"}}, "MASTER_ADDR", "'node0\\x0a'"},
      {{{"TORCHELASTIC_USE_AGENT_STORE", "1"}},
       "TORCHELASTIC_USE_AGENT_STORE",
       "'1'"},
      {{{"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCHELASTIC_RESTART_COUNT", "x"}},
       "TORCHELASTIC_RESTART_COUNT",
       "'x'"},
      {{{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"MASTER_PORT", "0"}},
       "MASTER_PORT",
       "'0'"},
      {{{"RANK", "0"},
        {"LOCAL_RANK", "0"},
        {"WORLD_SIZE", "1"},
        {"LOCAL_WORLD_SIZE", "1"},
        {"MASTER_PORT", "0"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
       "MASTER_PORT",
       "'0'"},
  };
}

void check_rejected(const BadValue& bad) {
  CAPTURE(bad.variable, bad.shown);
  const auto text =
      thrown_text<tandem::ConfigError>([&] { parse_changed(bad.changes); });
  REQUIRE(text.has_value());
  CHECK(text->starts_with(bad.variable + ": expected "));
  CHECK(missing_parts(*text, {"got", bad.shown}).empty());
  CHECK(text->find('\n') == std::string::npos);
}

} // namespace

TEST_CASE(
    "rendezvous variables that are no numbers give one line with name and "
    "value",
    "[comm][ENV-01]") {
  for (const auto& bad : bad_numbers()) {
    check_rejected(bad);
  }
}

TEST_CASE(
    "rendezvous variables that break a rule give one line with name and value",
    "[comm][ENV-01]") {
  for (const auto& bad : bad_combinations()) {
    check_rejected(bad);
  }
}

TEST_CASE("rendezvous variables are read as they are", "[comm][ENV-01]") {
  const auto env = parse_changed({});
  CHECK(env.rank == 1);
  CHECK(env.world_size == 4);
  CHECK(env.local_rank == 1);
  CHECK(env.local_world_size == 2);
  CHECK(env.master_addr == "node0.example");
  CHECK(env.master_port == 29500);
  CHECK_FALSE(env.agent_store);
  CHECK_FALSE(env.one_host);
  CHECK(parse_changed({{"LOCAL_WORLD_SIZE", "4"}}).one_host);
}

TEST_CASE(
    "rendezvous accepts the largest values, and port 0 from a world of one",
    "[comm][ENV-01]") {
  const auto env = parse_changed(
      {{"RANK", "2147483646"},
       {"WORLD_SIZE", "2147483647"},
       {"MASTER_PORT", "65535"}});
  CHECK(env.rank == 2147483646);
  CHECK(env.master_port == 65535);
  const auto alone = parse_changed(
      {{"RANK", "0"},
       {"WORLD_SIZE", "1"},
       {"LOCAL_RANK", "0"},
       {"LOCAL_WORLD_SIZE", "1"},
       {"MASTER_PORT", "0"}});
  CHECK(alone.master_port == 0);
}

TEST_CASE(
    "rendezvous derives local ranks only if all ranks are on one host",
    "[comm][ENV-01]") {
  const Changes absent{
      {"LOCAL_RANK", std::nullopt},
      {"LOCAL_WORLD_SIZE", std::nullopt}};
  for (const auto* host : {"127.0.0.1", "127.0.1.1", "localhost", "::1"}) {
    CAPTURE(host);
    auto changes = absent;
    changes["MASTER_ADDR"] = host;
    const auto env = parse_changed(changes);
    CHECK(env.local_rank == 1);
    CHECK(env.local_world_size == 4);
    CHECK(env.one_host);
  }
  const auto text =
      thrown_text<tandem::ConfigError>([&] { parse_changed(absent); });
  REQUIRE(text.has_value());
  CHECK(missing_parts(*text, {"LOCAL_WORLD_SIZE", "set LOCAL_RANK", "loopback"})
            .empty());
}

TEST_CASE(
    "rendezvous wants both local variables if one of them is set",
    "[comm][ENV-01]") {
  check_rejected(
      {{{"MASTER_ADDR", "localhost"}, {"LOCAL_RANK", std::nullopt}},
       "LOCAL_RANK",
       "not set"});
  check_rejected(
      {{{"MASTER_ADDR", "localhost"}, {"LOCAL_WORLD_SIZE", std::nullopt}},
       "LOCAL_WORLD_SIZE",
       "not set"});
}

TEST_CASE(
    "rendezvous rejects a local rank without a device only where CUDA is "
    "chosen",
    "[comm][ENV-01]") {
  const auto text =
      thrown_text<tandem::ConfigError>([] { parse_changed({}, 1); });
  REQUIRE(text.has_value());
  CHECK(missing_parts(*text, {"LOCAL_RANK: expected", "got 1", "1 can be seen"})
            .empty());
  CHECK(text->find('\n') == std::string::npos);
  CHECK(parse_changed({}, 2).local_rank == 1);
  CHECK(parse_changed({}).local_rank == 1);
}

TEST_CASE("rendezvous makes rank 0 a client of the agent's store", "[comm]") {
  const auto env = parse_changed(
      {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
       {"TORCHELASTIC_RESTART_COUNT", "3"}});
  CHECK(env.agent_store);
  CHECK(env.restart_count == 3);
  CHECK_FALSE(
      parse_changed({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}).agent_store);
}
