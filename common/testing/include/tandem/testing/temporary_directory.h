#pragma once

#include <filesystem>

namespace tandem::testing {

/// A new, empty directory that is removed with all it holds when destroyed.
class TemporaryDirectory {
 public:
  /// **Throws** `Error` if there can be none.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const {
    return path_;
  }

 private:
  std::filesystem::path path_;
};

} // namespace tandem::testing
