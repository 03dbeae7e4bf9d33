#pragma once

#include <string>
#include <vector>

namespace tandem::comm {

/// The same for processes that reach each other over the loopback interface,
/// different for others. Empty if the system does not tell.
std::string host_id();

/// True if the processes whose ids these are share a host.
bool are_on_one_host(const std::vector<std::string>& host_ids);

} // namespace tandem::comm
