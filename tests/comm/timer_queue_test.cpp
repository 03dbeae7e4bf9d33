#include "comm/src/timer_queue.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tandem_catch.h"

using namespace std::chrono_literals;
using tandem::comm::TimerQueue;

namespace {

/// A clock that goes when it is told to.
class FakeClock {
 public:
  TimerQueue::Clock clock() {
    return [now = now_] { return *now; };
  }
  void advance(std::chrono::milliseconds by) {
    *now_ += by;
  }

 private:
  std::shared_ptr<TimerQueue::Time> now_ = std::make_shared<TimerQueue::Time>();
};

} // namespace

TEST_CASE("a timer fires once, when its time has come", "[comm][FT-10]") {
  FakeClock clock;
  TimerQueue queue(clock.clock());
  int num_fired = 0;
  queue.arm(100ms, [&] { ++num_fired; });
  CHECK(queue.run_due() == 100ms);
  clock.advance(99ms);
  CHECK(queue.run_due() == 1ms);
  CHECK(num_fired == 0);
  clock.advance(1ms);
  CHECK(queue.run_due() == std::nullopt);
  CHECK(queue.run_due() == std::nullopt);
  CHECK(num_fired == 1);
}

TEST_CASE("a timer that was cancelled does not fire", "[comm][FT-10]") {
  FakeClock clock;
  TimerQueue queue(clock.clock());
  int num_fired = 0;
  const auto cancelled = queue.arm(10ms, [&] { num_fired += 100; });
  const auto kept = queue.arm(10ms, [&] { ++num_fired; });
  CHECK(queue.cancel(cancelled));
  CHECK_FALSE(queue.cancel(cancelled));
  clock.advance(10ms);
  queue.run_due();
  CHECK(num_fired == 1);
  CHECK_FALSE(queue.cancel(kept));
}

TEST_CASE("a timer that is pending goes with its queue", "[comm][FT-10]") {
  FakeClock clock;
  const auto held = std::make_shared<int>();
  int num_fired = 0;
  {
    TimerQueue queue(clock.clock());
    queue.arm(10ms, [&, held] { ++num_fired; });
    CHECK(held.use_count() == 2);
    clock.advance(20ms);
  }
  CHECK(held.use_count() == 1);
  CHECK(num_fired == 0);
}

TEST_CASE("eight timers fire in the order of their times", "[comm][FT-10]") {
  FakeClock clock;
  TimerQueue queue(clock.clock());
  std::vector<int> fired;
  const std::vector<int> delays_ms{50, 10, 80, 10, 30, 70, 20, 60};
  for (size_t i = 0; i < delays_ms.size(); ++i) {
    queue.arm(std::chrono::milliseconds(delays_ms[i]), [&fired, i] {
      fired.push_back(static_cast<int>(i));
    });
  }
  clock.advance(30ms);
  CHECK(queue.run_due() == 20ms);
  CHECK(fired == std::vector<int>{1, 3, 6, 4});
  clock.advance(1s);
  CHECK(queue.run_due() == std::nullopt);
  CHECK(fired == std::vector<int>{1, 3, 6, 4, 0, 7, 5, 2});
}

TEST_CASE("a timer may arm and cancel others as it fires", "[comm][FT-10]") {
  FakeClock clock;
  TimerQueue queue(clock.clock());
  int num_fired = 0;
  int64_t victim = 0;
  queue.arm(10ms, [&] {
    ++num_fired;
    CHECK(queue.cancel(victim));
    queue.arm(5ms, [&] { num_fired += 10; });
  });
  victim = queue.arm(10ms, [&] { num_fired += 100; });
  clock.advance(10ms);
  CHECK(queue.run_due() == 5ms);
  clock.advance(5ms);
  queue.run_due();
  CHECK(num_fired == 11);
}
