#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace tandem::comm::launch {

/// What a rank said of its end in an error file.
struct ErrorRecord {
  std::string message;
  std::chrono::system_clock::time_point time;
};

/// Reads a file as torch.distributed.elastic and `write_error_file` write it;
/// nothing if it is not there or is something else. The file's own time refines
/// the whole seconds that it holds. Long messages are cut.
std::optional<ErrorRecord> read_error_file(const std::string& path);

} // namespace tandem::comm::launch
