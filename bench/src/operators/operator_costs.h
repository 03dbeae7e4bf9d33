#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tandem/train/results.h>

#include "harness/turns.h"

namespace tandem::bench {

/// The variant of the rows of the CNN's training step.
inline constexpr const char* kCnnStep = "cnn-step";

/// What an operator, and a training step of the CNN with `batch` rows, take on
/// the CPU and on a simulated device, by turns in this process, on one thread.
/// Two rows for each, of the strategy "bare", with the variants "<what>/cpu" and
/// "<what>/sim"; an operator's times are those of one call, means over many.
/// Besides, the CNN's step on the simulated device in the wrappers "single" and
/// "dp": in one process they differ by less than from one process to another.
///
/// Makes a simulated device: nothing may have trained in the process before.
/// **Throws** `VerificationError` if a result differs by a bit; nothing is
/// timed then.
std::vector<train::ResultRow> measure_operators(
    int64_t batch,
    const TurnPlan& turns);

} // namespace tandem::bench
