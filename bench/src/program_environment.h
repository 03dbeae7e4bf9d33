#pragma once

#include <cstdint>

#include <tandem/train/environment.h>

namespace tandem::bench {

/// What a results file says of this program where each worker has `threads`.
train::Environment program_environment(int64_t threads);

} // namespace tandem::bench
