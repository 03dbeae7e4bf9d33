#pragma once

#include <cstdint>
#include <memory>

#include <tandem/comm/launcher.h>

namespace tandem::comm {

namespace launch {
class AgentStore;
} // namespace launch

/// Where ranks that this process starts on this host meet: a store served from
/// here, on the loopback interface and a port that the kernel chose. For those
/// who start ranks by other means than `launch_local`.
///
/// **Owns** the store: it is gone when this is destroyed.
class LocalRendezvous {
 public:
  /// **Throws** `Error` if the system refuses a socket.
  explicit LocalRendezvous(int64_t num_ranks);
  ~LocalRendezvous();
  LocalRendezvous(const LocalRendezvous&) = delete;
  LocalRendezvous& operator=(const LocalRendezvous&) = delete;

  /// The whole environment of `rank`: this process's and, over it, torchrun's
  /// variables.
  Environment environment_of(int64_t rank) const;

 private:
  int64_t num_ranks_;
  std::unique_ptr<launch::AgentStore> store_;
};

} // namespace tandem::comm
