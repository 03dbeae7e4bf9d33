// Files for the tests of readers and writers, in a folder that goes away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem::train::test {

/// A new empty folder, removed with its content by the destructor.
class TemporaryDir {
 public:
  TemporaryDir();
  ~TemporaryDir();
  TemporaryDir(const TemporaryDir&) = delete;
  TemporaryDir& operator=(const TemporaryDir&) = delete;

  std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  const std::filesystem::path& path() const {
    return path_;
  }

 private:
  std::filesystem::path path_;
};

/// An idx file of bytes: header for `shape`, then `elements`.
std::string idx_bytes(
    const std::vector<uint32_t>& shape,
    const std::string& elements);

void write_plain(const std::filesystem::path& path, const std::string& bytes);
void write_gzip(const std::filesystem::path& path, const std::string& bytes);

} // namespace tandem::train::test
