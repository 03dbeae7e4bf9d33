#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "tandem_catch.h"
#include "training.h"

using namespace tandem::suite;

namespace {

/// `body` with a new stream as the current one of every device.
Body on_own_streams(const Body& body) {
  return [=](const Worker& worker) {
    const auto type = worker.device.type();
    if (type == at::kCPU) {
      return body(worker);
    }
    const c10::impl::VirtualGuardImpl guard(type);
    std::vector<c10::Stream> streams;
    for (at::DeviceIndex index = 0; index < guard.deviceCount(); ++index) {
      const at::Device device(type, index);
      streams.push_back(guard.getNewStream(device));
      c10::Event before(type);
      before.record(guard.getDefaultStream(device));
      before.block(streams.back());
    }
    std::vector<at::Tensor> results;
    {
      const c10::MultiStreamGuard on_streams(streams);
      results = body(worker);
    }
    for (const auto& stream : streams) {
      stream.synchronize();
    }
    return results;
  };
}

} // namespace

TEST_CASE(
    "wrapper trains on streams of the caller's",
    "[suite][only-sim][only-sim-hazards]") {
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(
        wrapping,
        on_own_streams(train<ConvNetImpl>(kRows, 3, sgd_with_momentum())));
  }
}
