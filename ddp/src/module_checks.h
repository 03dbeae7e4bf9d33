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
/// `spans_devices`: the module may lie on several devices.
void check_tensors(
    const ModuleTensors& tensors,
    at::Device device,
    bool spans_devices,
    const comm::ProcessGroup& group);

/// Whether the module's tensors lie on several devices of this type, and on no
/// other.
bool lies_on_several(const ModuleTensors& tensors, at::DeviceType type);

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
