#pragma once

#include <cstdint>
#include <optional>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/comm/comm.h>
#include <tandem/comm/rendezvous_env.h>

#include "init_method.h"

namespace tandem::comm {

/// Who this rank is and where it meets the others. Opens nothing.
struct Rendezvous {
  InitMethod method;
  /// Of files and given stores, without an address.
  RendezvousEnv env;
};

/// Note [Where the rank comes from]
/// Options say it first, then the URL, then the variables: torchrun's, or those
/// of a scheduler where torchrun's are absent. What the former say is laid over
/// the latter, so that one place checks it all.
///
/// `with_store`: the caller has a store, and the URL is not looked at.
/// `visible_devices` is as for `parse_rendezvous_env`.
/// **Throws** `ConfigError`.
Rendezvous plan_rendezvous(
    const ProcessGroupOptions& options,
    bool with_store,
    const EnvLookup& lookup,
    std::optional<int64_t> visible_devices);

/// The store that the URL names.
/// **Throws** as `connect_tcp_store`; `ConfigError` if a file cannot be used.
c10::intrusive_ptr<c10d::Store> open_store(
    const Rendezvous& rendezvous,
    std::chrono::milliseconds limit);

} // namespace tandem::comm
