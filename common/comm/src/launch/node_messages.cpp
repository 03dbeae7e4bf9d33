#include "node_messages.h"

#include <chrono>
#include <vector>

#include <nlohmann/json.hpp>

namespace tandem::comm::launch {

namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;
using std::chrono::system_clock;

constexpr auto kProtocol = "tandem-launch/1";

Json json_of(const RankFailure& failure) {
  const auto age = std::chrono::duration_cast<microseconds>(
      system_clock::now() - failure.time);
  return {
      {"rank", failure.rank},
      {"node_rank", failure.node_rank},
      {"pid", failure.pid},
      {"code", failure.status.code},
      {"signal", failure.status.signal},
      {"last_lines", failure.last_lines},
      {"error", failure.error},
      {"age_us", age.count()}};
}

RankFailure read_failure(const Json& json) {
  RankFailure failure;
  json.at("rank").get_to(failure.rank);
  json.at("node_rank").get_to(failure.node_rank);
  json.at("pid").get_to(failure.pid);
  json.at("code").get_to(failure.status.code);
  json.at("signal").get_to(failure.status.signal);
  json.at("last_lines").get_to(failure.last_lines);
  json.at("error").get_to(failure.error);
  failure.time =
      system_clock::now() - microseconds(json.at("age_us").get<int64_t>());
  return failure;
}

Json json_of(const std::vector<RankFailure>& failures) {
  auto json = Json::array();
  for (const auto& failure : failures) {
    json.push_back(json_of(failure));
  }
  return json;
}

std::vector<RankFailure> read_failures(const Json& json) {
  std::vector<RankFailure> failures;
  for (const auto& failure : json) {
    failures.push_back(read_failure(failure));
  }
  return failures;
}

} // namespace

Hello hello_of(const LaunchOptions& options) {
  return {
      kProtocol,
      options.num_nodes(),
      options.node_rank(),
      options.num_ranks(),
      options.max_restarts()};
}

Json to_message(const Hello& hello) {
  return {
      {"type", "hello"},
      {"protocol", hello.protocol},
      {"num_nodes", hello.num_nodes},
      {"node_rank", hello.node_rank},
      {"num_local_ranks", hello.num_local_ranks},
      {"max_restarts", hello.max_restarts}};
}

Hello read_hello(const Json& message) {
  return {
      message.at("protocol").get<std::string>(),
      message.at("num_nodes").get<int64_t>(),
      message.at("node_rank").get<int64_t>(),
      message.at("num_local_ranks").get<int64_t>(),
      message.at("max_restarts").get<int64_t>()};
}

Json to_message(const Start& start) {
  const auto& rendezvous = start.rendezvous;
  return {
      {"type", "start"},
      {"num_ranks", rendezvous.num_ranks},
      {"num_local_ranks", rendezvous.num_local_ranks},
      {"first_rank", rendezvous.first_rank},
      {"node_rank", rendezvous.node_rank},
      {"num_nodes", rendezvous.num_nodes},
      {"address", rendezvous.address},
      {"port", rendezvous.port},
      {"run_id", rendezvous.run_id},
      {"attempt", rendezvous.attempt},
      {"max_restarts", rendezvous.max_restarts},
      {"failures", json_of(start.failures)}};
}

Start read_start(const Json& message) {
  Start start;
  auto& rendezvous = start.rendezvous;
  message.at("num_ranks").get_to(rendezvous.num_ranks);
  message.at("num_local_ranks").get_to(rendezvous.num_local_ranks);
  message.at("first_rank").get_to(rendezvous.first_rank);
  message.at("node_rank").get_to(rendezvous.node_rank);
  message.at("num_nodes").get_to(rendezvous.num_nodes);
  message.at("address").get_to(rendezvous.address);
  message.at("port").get_to(rendezvous.port);
  message.at("run_id").get_to(rendezvous.run_id);
  message.at("attempt").get_to(rendezvous.attempt);
  message.at("max_restarts").get_to(rendezvous.max_restarts);
  start.failures = read_failures(message.at("failures"));
  return start;
}

Json to_message(const AttemptEnd& end) {
  return {
      {"type", "end"},
      {"failures", json_of(end.failures)},
      {"interrupted_by", end.interrupted_by},
      {"clean", end.clean}};
}

AttemptEnd read_end(const Json& message) {
  AttemptEnd end;
  end.failures = read_failures(message.at("failures"));
  message.at("interrupted_by").get_to(end.interrupted_by);
  message.at("clean").get_to(end.clean);
  return end;
}

Json to_message(const Finish& finish) {
  const auto& result = finish.result;
  return {
      {"type", "finish"},
      {"exit_code", result.exit_code},
      {"has_failed", result.first_failure.has_value()},
      {"interrupted_by", result.interrupted_by},
      {"node_failure", result.node_failure},
      {"causes", json_of(result.causes)},
      {"failures", json_of(finish.failures)}};
}

Finish read_finish(const Json& message) {
  Finish finish;
  auto& result = finish.result;
  message.at("exit_code").get_to(result.exit_code);
  message.at("interrupted_by").get_to(result.interrupted_by);
  message.at("node_failure").get_to(result.node_failure);
  result.causes = read_failures(message.at("causes"));
  finish.failures = read_failures(message.at("failures"));
  if (message.at("has_failed").get<bool>() && !result.causes.empty()) {
    result.first_failure = cause_of(result);
  }
  return finish;
}

} // namespace tandem::comm::launch
