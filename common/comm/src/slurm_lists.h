#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::comm {

/// The first host of a list as SLURM writes it: "node003" of
/// "node[003-005,9],gpu1". Nothing if `list` is no such list.
std::optional<std::string> first_slurm_host(const std::string& list);

/// How many tasks node `index` runs by a list as SLURM writes it: "2(x3),1" is
/// 2, 2, 2, 1. Nothing if it does not say.
std::optional<int64_t> slurm_tasks_of_node(
    const std::string& list,
    int64_t index);

} // namespace tandem::comm
