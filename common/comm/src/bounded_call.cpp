#include "bounded_call.h"

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "sigpipe_guard.h"

namespace tandem::comm {

bool returns_within(
    std::chrono::milliseconds limit,
    std::function<void()> call) noexcept {
  try {
    const SigpipeGuard guard;
    auto has_returned = std::make_shared<std::promise<bool>>();
    auto outcome = has_returned->get_future();
    std::thread([has_returned, call = std::move(call)] {
      try {
        call();
        has_returned->set_value(true);
      } catch (...) {
        has_returned->set_value(false);
      }
    }).detach();
    return outcome.wait_for(limit) == std::future_status::ready &&
        outcome.get();
  } catch (...) {
    return false;
  }
}

} // namespace tandem::comm
