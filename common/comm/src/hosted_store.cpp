#include "hosted_store.h"

#include <map>
#include <mutex>

namespace tandem::comm {

namespace {

/// Addresses of living stores, by port. (Weak references would keep the servers
/// of dropped stores: c10 destroys an object with its last weak one.)
class HostedPorts {
 public:
  static HostedPorts& instance() {
    // Never destroyed: the process's default group may be dropped after it.
    static auto* const ports = new HostedPorts();
    return *ports;
  }

  std::optional<std::string> find(uint16_t port) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = addresses_.find(port);
    return found == addresses_.end() ? std::nullopt
                                     : std::make_optional(found->second);
  }

  void add(uint16_t port, const std::string& address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    addresses_.emplace(port, address);
  }

  void remove(uint16_t port) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = addresses_.find(port);
    if (found != addresses_.end()) {
      addresses_.erase(found);
    }
  }

 private:
  std::mutex mutex_;
  std::multimap<uint16_t, std::string> addresses_;
};

} // namespace

std::optional<std::string> HostedStore::running_at(uint16_t port) {
  return HostedPorts::instance().find(port);
}

HostedStore::HostedStore(
    const std::string& address,
    const c10d::TCPStoreOptions& options)
    : TCPStore(address, options) {
  HostedPorts::instance().add(getPort(), address);
}

HostedStore::~HostedStore() {
  HostedPorts::instance().remove(getPort());
}

} // namespace tandem::comm
