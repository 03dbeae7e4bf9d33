#pragma once

#include <chrono>
#include <functional>

namespace tandem::comm {

/// Runs `call` in a thread of its own. True once it has returned; false if it
/// throws, or has not returned within `limit`: then it goes on by itself, so it
/// must own all that it touches.
///
/// For calls of a store, whose client waits without a limit for a host that
/// was stopped.
bool returns_within(
    std::chrono::milliseconds limit,
    std::function<void()> call) noexcept;

} // namespace tandem::comm
