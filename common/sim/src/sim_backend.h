#pragma once

#include <tandem/comm/backend.h>

namespace tandem::sim {

/// Collectives of tensors on simulated devices, named "sim": the CPU's backend
/// on CPU tensors over the same bytes. Ranks may be threads or processes.
comm::BackendFactory sim_backend();

} // namespace tandem::sim
