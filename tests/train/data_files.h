// Data files for the tests of their readers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem::train::test {

/// An idx file of bytes: header for `shape`, then `elements`.
std::string idx_bytes(
    const std::vector<uint32_t>& shape,
    const std::string& elements);

void write_plain(const std::filesystem::path& path, const std::string& bytes);
void write_gzip(const std::filesystem::path& path, const std::string& bytes);

} // namespace tandem::train::test
