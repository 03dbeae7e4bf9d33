#pragma once

#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// The rows of `measure_operators`, a line for each that has something to be
/// compared with: what runs on a simulated device with the same on the CPU, a
/// wrapper with the bare module on its device.
std::string operator_table(const std::vector<train::ResultRow>& rows);

} // namespace tandem::bench
