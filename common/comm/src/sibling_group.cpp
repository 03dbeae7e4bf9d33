#include <tandem/comm/sibling_group.h>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <tandem/comm/backend.h>

namespace tandem::comm {

std::shared_ptr<ProcessGroup> sibling_group(ProcessGroup& group) {
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("sibling/{}", group.next_sequence()),
      group.store());
  return connect_group(
      {.store = store,
       .rank = group.rank(),
       .size = group.size(),
       .device = group.device(),
       .timeout = group.timeout(),
       .startup_timeout = group.startup_timeout(),
       .one_host = false,
       .diagnostics = group.diagnostics()});
}

} // namespace tandem::comm
