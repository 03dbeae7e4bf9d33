#pragma once

#include <filesystem>
#include <string>

namespace tandem::train {

/// Replaces the content of a file in one step, by way of a temporary file
/// beside it.
/// **Throws** `ConfigError` naming the file; the old content is intact then.
void write_file_atomically(
    const std::filesystem::path& path,
    const std::string& content);

} // namespace tandem::train
