#pragma once

#include <cstdint>
#include <string>

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Store;
} // namespace c10d

namespace tandem::comm::launch {

/// The ranks' store, served from this process on the loopback interface alone
/// and a port that the kernel chose.
class AgentStore {
 public:
  /// **Throws** `Error`.
  AgentStore();
  ~AgentStore();
  AgentStore(const AgentStore&) = delete;
  AgentStore& operator=(const AgentStore&) = delete;

  std::string address() const {
    return "127.0.0.1";
  }
  uint16_t port() const {
    return port_;
  }

 private:
  uint16_t port_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
};

} // namespace tandem::comm::launch
