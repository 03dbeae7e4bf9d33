#pragma once

namespace tandem::sim {

/// Registers the kernels of all operators, for the life of the process.
void register_operators();

} // namespace tandem::sim
