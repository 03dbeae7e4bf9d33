#include "builtin_backends.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <tandem/comm/env_reader.h>

#include "network_interfaces.h"
#include "sigpipe_guard.h"

namespace tandem::comm {

namespace {

using Gloo = c10d::ProcessGroupGloo;

constexpr const char* kLoopback = "127.0.0.1";
// With one, a collective would wait for the one before it.
constexpr int kNumThreads = 2;
// A tag that no collective of ours uses for point-to-point messages.
constexpr int kAbortTag = 0x7fffff;

/// Gloo with a way to fail what is in flight, which c10d's has not.
class AbortableGloo final : public Gloo {
 public:
  using Gloo::Gloo;

  // A receive that times out makes Gloo close all pairs of its context: then
  // whatever is in flight fails here at once, and at the peers as soon as they
  // see the connections closed.
  void abort() override {
    const SigpipeGuard guard;
    for (int peer = 0; peer < getSize(); ++peer) {
      if (peer != getRank() && close_by_timeout(peer)) {
        return;
      }
    }
  }

 private:
  bool close_by_timeout(int peer) {
    std::vector<at::Tensor> nothing{at::empty({1}, at::kByte)};
    try {
      recv(nothing, peer, kAbortTag)->wait(std::chrono::milliseconds(1));
    } catch (const std::exception& error) {
      // The pair of a dead peer fails without a time-out; try the next one.
      return std::string(error.what()).find("imed out") != std::string::npos;
    }
    return false;
  }
};

void add_devices(Gloo::Options& options, bool one_host) {
  const auto interfaces = chosen_interfaces(process_env);
  for (const auto& name : interfaces) {
    options.devices.push_back(Gloo::createDeviceForInterface(name));
  }
  if (!interfaces.empty()) {
    return;
  }
  options.devices.push_back(
      one_host ? Gloo::createDeviceForHostname(kLoopback)
               : Gloo::createDefaultDevice());
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendRequest& request) {
  const SigpipeGuard guard;
  auto options = Gloo::Options::create(request.startup_timeout);
  add_devices(*options, request.one_host);
  options->threads = kNumThreads;
  auto gloo = c10::make_intrusive<AbortableGloo>(
      request.store,
      static_cast<int>(request.rank),
      static_cast<int>(request.size),
      options);
  gloo->setTimeout(request.timeout);
  return gloo;
}

} // namespace

BackendFactory gloo_backend() {
  return {"gloo", make_gloo};
}

} // namespace tandem::comm
