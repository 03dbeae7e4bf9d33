#pragma once

#include <memory>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// Makes `group` the process's default; false, and nothing done, if there is
/// one.
bool set_process_default(std::shared_ptr<ProcessGroup> group);

bool has_process_default();

} // namespace tandem::comm
