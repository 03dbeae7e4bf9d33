#pragma once

#include <cstdint>
#include <string>

#include "harness/bench_recipe.h"
#include "harness/mode.h"

namespace tandem::bench {

/// Becomes the Python program that does a rank's part of such a mode: the same
/// network, batch, threads and turns. Does not return.
/// **Throws** `Error` if `python` cannot be run.
[[noreturn]] void become_python_peer(
    const std::string& python,
    const Mode& mode,
    const BenchRecipe& recipe,
    int64_t mode_index,
    int64_t port);

} // namespace tandem::bench
