#include "tandem_catch.h"

#include <csignal>
#include <optional>

#include "launch/restarts.h"

namespace {

using tandem::comm::RankFailure;
using tandem::comm::launch::AttemptEnd;
using tandem::comm::launch::Restarts;

AttemptEnd failed_with(int code) {
  AttemptEnd end;
  RankFailure failure;
  failure.rank = 1;
  failure.status.code = code;
  end.failures.push_back(failure);
  return end;
}

} // namespace

TEST_CASE("Restarts ends a launch at its first success", "[launch]") {
  Restarts restarts(2);
  CHECK(restarts.attempt() == 0);
  CHECK_FALSE(restarts.after(failed_with(3)));
  CHECK(restarts.attempt() == 1);
  const auto result = restarts.after({});
  REQUIRE(result);
  CHECK(result->exit_code == 0);
  CHECK_FALSE(result->first_failure);
  CHECK(result->causes.size() == 1);
}

TEST_CASE("Restarts returns the first cause when none is left", "[launch]") {
  Restarts restarts(2);
  CHECK_FALSE(restarts.after(failed_with(3)));
  CHECK_FALSE(restarts.after(failed_with(4)));
  const auto result = restarts.after(failed_with(5));
  REQUIRE(result);
  CHECK(result->exit_code == 3);
  CHECK(result->first_failure.value().status.code == 3);
  REQUIRE(result->causes.size() == 3);
  CHECK(result->causes[2].status.code == 5);
}

TEST_CASE("Restarts leaves no restart without being asked", "[launch]") {
  Restarts restarts(0);
  const auto result = restarts.after(failed_with(3));
  REQUIRE(result);
  CHECK(result->exit_code == 3);
}

TEST_CASE("Restarts starts nothing again after an interrupt", "[launch]") {
  Restarts restarts(2);
  CHECK_FALSE(restarts.after(failed_with(3)));
  auto end = failed_with(0);
  end.failures.front().status.signal = SIGINT;
  end.interrupted_by = SIGINT;
  const auto result = restarts.after(end);
  REQUIRE(result);
  CHECK(result->exit_code == 128 + SIGINT);
  CHECK(result->interrupted_by == SIGINT);
}

TEST_CASE("Restarts starts nothing beside a process that is left", "[launch]") {
  Restarts restarts(2);
  auto end = failed_with(3);
  end.clean = false;
  CHECK(restarts.after(end).value().exit_code == 3);
}
