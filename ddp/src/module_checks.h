#pragma once

#include <c10/core/Device.h>

#include <tandem/comm/process_group.h>
#include <tandem/ddp/options.h>

#include "module_tensors.h"

namespace tandem::detail {

/// What a rank can tell without asking the others.
/// **Throws** `ConfigError` naming the option, parameter or buffer.
void check_options(
    const DistributedDataParallelOptions& options,
    const comm::ProcessGroup& group);
void check_names(
    const ModuleTensors& tensors,
    const DistributedDataParallelOptions& options,
    const comm::ProcessGroup& group);
void check_tensors(
    const ModuleTensors& tensors,
    at::Device device,
    const comm::ProcessGroup& group);

/// What must stay as it was when the module was wrapped.
/// **Throws** `ConfigError` naming the parameter.
void check_unchanged(
    const NamedTensor& parameter,
    const TensorType& wrapped_as,
    const comm::ProcessGroup& group);
void check_still_frozen(
    const NamedTensor& parameter,
    const comm::ProcessGroup& group);

} // namespace tandem::detail
