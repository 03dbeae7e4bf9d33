#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <tandem/core/forward_call.h>

#include "statistics_meeting.h"
#include "worker_thread.h"

namespace tandem::detail {

/// Runs the first `num_chunks` replicas on the chunks of `call` at the same
/// time: replica 0 on the calling thread, replica i on worker i - 1, all with
/// the calling thread's state and number of intra-op threads. If `layers` has
/// any, they combine their statistics over the chunks.
///
/// **Throws** what replicas threw, after all have finished: the exception
/// itself, with context, if one failed by a `c10::Error`; else `ReplicaError`.
void parallel_apply(
    ForwardCall& call,
    size_t num_chunks,
    const std::vector<std::shared_ptr<torch::nn::Module>>& replicas,
    const std::vector<at::Device>& devices,
    const LayerNames& layers,
    const std::vector<std::unique_ptr<WorkerThread>>& workers);

} // namespace tandem::detail
