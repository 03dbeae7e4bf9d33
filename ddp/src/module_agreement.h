#pragma once

#include <string>

#include <c10/core/Device.h>

#include <tandem/comm/process_group.h>
#include <tandem/ddp/options.h>

#include "module_tensors.h"

namespace tandem::detail {

/// Makes sure that all ranks wrap the same module with the same options, before
/// the first collective could mix up or hang.
/// **Collective**; a rank that is unfit calls `report_unfit` in its place.
/// **Throws** `ConfigError` on every rank, naming what differs; `PeerError` if
/// a rank reported itself unfit.
void agree_on_module(
    comm::ProcessGroup& group,
    const ModuleTensors& tensors,
    at::Device device,
    const DistributedDataParallelOptions& options);

void report_unfit(comm::ProcessGroup& group, const std::string& message);

} // namespace tandem::detail
