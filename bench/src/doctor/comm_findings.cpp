#include "doctor/finding.h"

#include <array>
#include <exception>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <tandem/comm/backend.h>
#include <tandem/comm/rendezvous_env.h>
#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

constexpr std::array kRendezvousVariables{
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE"};

Finding rendezvous_finding() {
  const std::string subject = "rendezvous";
  std::string set;
  for (const auto* name : kRendezvousVariables) {
    if (const auto value = comm::process_env(name)) {
      set += fmt::format("{}{}={}", set.empty() ? "" : " ", name, *value);
    }
  }
  if (set.empty()) {
    return {
        Verdict::kOk,
        subject,
        "no variables set: this process is a world of one"};
  }
  try {
    comm::parse_rendezvous_env(comm::process_env, std::nullopt);
    return {Verdict::kOk, subject, set};
  } catch (const ConfigError& error) {
    return {
        Verdict::kBroken,
        subject,
        error.what_without_backtrace(),
        "unset the variables, or start ranks with tandem launch or torchrun"};
  }
}

// Serves a store there and meets it as a client, as every launch does.
Finding loopback_finding() {
  const std::string subject = "loopback";
  try {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    options.timeout = std::chrono::seconds(10);
    c10d::TCPStore("127.0.0.1", options).add("doctor", 1);
    return {Verdict::kOk, subject, "a store on 127.0.0.1 answers"};
  } catch (...) {
    const auto message = message_of(std::current_exception());
    return {
        Verdict::kBroken,
        subject,
        "a store on 127.0.0.1 does not answer: " +
            message.substr(0, message.find('\n')),
        "bring the loopback interface up: ip link set lo up"};
  }
}

} // namespace

std::vector<Finding> comm_findings() {
  return {
      {Verdict::kOk, "CPU backend", comm::backend_factory(at::kCPU).name},
      rendezvous_finding(),
      loopback_finding()};
}

} // namespace tandem::bench
