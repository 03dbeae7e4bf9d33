#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace tandem::comm {

/// A store whose server this process runs, shared with the process's other
/// stores on the port: c10d lets a second store join the server of a first one
/// (`multiTenant`), but does not tell whether it will.
class HostedStore final : public c10d::TCPStore {
 public:
  /// Where a server of this process listens on `port`; nothing if none does.
  static std::optional<std::string> running_at(uint16_t port);

  HostedStore(const std::string& address, const c10d::TCPStoreOptions& options);
  ~HostedStore() override;
  HostedStore(const HostedStore&) = delete;
  HostedStore& operator=(const HostedStore&) = delete;
};

} // namespace tandem::comm
