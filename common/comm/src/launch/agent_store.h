#pragma once

#include <cstdint>
#include <string>

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Store;
} // namespace c10d

namespace tandem::comm::launch {

/// The ranks' store, served from this process on one interface alone and a port
/// that the kernel chose.
class AgentStore {
 public:
  /// `host`: this one's name or address on the interface.
  /// **Throws** `Error`.
  explicit AgentStore(std::string host = "127.0.0.1");
  ~AgentStore();
  AgentStore(const AgentStore&) = delete;
  AgentStore& operator=(const AgentStore&) = delete;

  const std::string& address() const {
    return host_;
  }
  uint16_t port() const {
    return port_;
  }

 private:
  std::string host_;
  uint16_t port_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
};

} // namespace tandem::comm::launch
