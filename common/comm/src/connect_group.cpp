#include <tandem/comm/backend.h>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <tandem/comm/env_reader.h>
#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "backend_registry.h"
#include "host_id.h"
#include "network_interfaces.h"
#include "store_meeting.h"
#include "text.h"

namespace tandem::comm {

namespace {

using BackendType = c10d::ProcessGroup::BackendType;

// c10d allows one backend of each type in a group, so the type follows the
// device, whoever serves it.
BackendType backend_type(at::DeviceType device_type) {
  switch (device_type) {
    case at::kCPU:
      return BackendType::GLOO;
    case at::kCUDA:
      return BackendType::NCCL;
    default:
      return BackendType::CUSTOM;
  }
}

/// The part of the store that belongs to this rank's next group: each rank
/// counts its own, so that threads and processes come to the same number.
c10::intrusive_ptr<c10d::Store> next_group_store(
    const BackendRequest& request) {
  if (request.size == 1) {
    return c10::make_intrusive<c10d::HashStore>();
  }
  const auto number =
      request.store->add(fmt::format("tandem/groups/{}", request.rank), 1);
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("tandem/group/{}", number),
      request.store);
}

/// Returns whether all are on one host.
bool meet_all_ranks(c10d::Store& store, const BackendRequest& request) {
  const auto ranks = all_ranks(request.size);
  StoreMeeting meeting(store, "arrived", ranks);
  meeting.arrive(request.rank, host_id());
  const auto missing = meeting.await(request.startup_timeout).missing;
  if (missing.empty()) {
    return request.one_host || are_on_one_host(meeting.values());
  }
  leave_in_order(store, "arrived", request.rank, ranks_without(ranks, missing));
  throw TimeoutError(fmt::format(
      "{} start-up: expected {} ranks within {}, got no sign of {}. See what "
      "they printed last, or raise startup_timeout",
      rank_tag("comm", request.rank, request.size),
      request.size,
      format_limit(request.startup_timeout),
      list_ranks(missing)));
}

} // namespace

std::shared_ptr<ProcessGroup> connect_group(const BackendRequest& request) {
  const auto factories = backends_for(request.device);
  // Before the others are met, who would wait for this rank's connections.
  static_cast<void>(chosen_interfaces(process_env));
  auto own = request;
  own.store = next_group_store(request);
  own.one_host = meet_all_ranks(*own.store, request);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(
      own.store,
      static_cast<int>(request.rank),
      static_cast<int>(request.size));
  for (const auto& [device_type, factory] : factories) {
    group->setBackend(
        device_type,
        backend_type(device_type),
        factory.make(own));
  }
  group->setDefaultBackend(backend_type(at::kCPU));
  return std::make_shared<ProcessGroup>(
      std::move(group),
      own.store,
      request.device,
      request.timeout,
      request.startup_timeout,
      request.diagnostics);
}

} // namespace tandem::comm
