#pragma once

#include <chrono>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/comm/rendezvous_env.h>

namespace tandem::comm {

/// The store that all ranks of `env` share: hosted by rank 0 or by the launcher
/// (torchrun's agent), keys below the launcher's attempt.
/// **Throws** `ConfigError` if MASTER_ADDR cannot be resolved or MASTER_PORT is
/// taken; `TimeoutError` if the host did not answer within `limit`.
c10::intrusive_ptr<c10d::Store> connect_tcp_store(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit);

} // namespace tandem::comm
