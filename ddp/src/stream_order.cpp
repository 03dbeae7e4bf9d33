#include "stream_order.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace tandem::detail {

void StreamOrder::join_current(at::Device device) {
  if (device.is_cpu()) {
    return;
  }
  const auto current =
      c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  if (last_ && *last_ != current) {
    c10::Event event(device.type());
    event.record(*last_);
    event.block(current);
  }
  last_ = current;
}

} // namespace tandem::detail
