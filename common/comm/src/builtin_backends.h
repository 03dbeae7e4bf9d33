#pragma once

#include <optional>

#include <tandem/comm/backend.h>

namespace tandem::comm {

/// Serves CPU tensors.
BackendFactory gloo_backend();

/// Serves CUDA tensors; nothing in a build without NCCL.
std::optional<BackendFactory> nccl_backend();

} // namespace tandem::comm
