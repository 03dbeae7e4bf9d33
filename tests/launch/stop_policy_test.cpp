#include "tandem_catch.h"

#include <csignal>

#include "launch/stop_policy.h"

namespace {

using tandem::comm::launch::StopPolicy;
using namespace std::chrono_literals;

constexpr StopPolicy::Time kStart{};
const std::optional<int> kNoSignal;

} // namespace

TEST_CASE(
    "StopPolicy sends SIGTERM when a rank fails and SIGKILL after the grace",
    "[launch]") {
  StopPolicy policy(5s);
  CHECK(policy.due(kStart) == kNoSignal);
  policy.on_end(kStart);
  CHECK(policy.due(kStart) == SIGTERM);
  CHECK(policy.due(kStart) == kNoSignal);
  policy.on_end(kStart + 4s); // the next one: the grace began with the first
  CHECK(policy.due(kStart + 4999ms) == kNoSignal);
  CHECK_FALSE(policy.killed_at());
  CHECK(policy.due(kStart + 5s) == SIGKILL);
  CHECK(policy.killed_at() == kStart + 5s);
  CHECK(policy.due(kStart + 60s) == kNoSignal);
}

TEST_CASE(
    "StopPolicy forwards the first interrupt and makes the second SIGKILL",
    "[launch][FT-08]") {
  for (const int signal : {SIGINT, SIGTERM}) {
    StopPolicy policy(5s);
    policy.on_interrupt(signal);
    CHECK(policy.due(kStart) == signal);
    CHECK(policy.interrupted_by() == signal);
    CHECK(policy.due(kStart + 3600s) == kNoSignal); // ranks may take their time
    policy.on_interrupt(SIGTERM);
    CHECK(policy.due(kStart + 3600s) == SIGKILL);
    CHECK(policy.interrupted_by() == signal);
  }
}

TEST_CASE(
    "StopPolicy counts the grace from the first rank that an interrupt ended",
    "[launch]") {
  StopPolicy policy(5s);
  policy.on_interrupt(SIGINT);
  CHECK(policy.due(kStart) == SIGINT);
  policy.on_end(kStart + 10s);
  CHECK(policy.due(kStart + 10s) == kNoSignal); // it has SIGINT already
  CHECK(policy.due(kStart + 15s) == SIGKILL);
}
