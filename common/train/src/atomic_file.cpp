#include "atomic_file.h"

#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include <tandem/core/errors.h>

namespace tandem::train {

namespace {

[[noreturn]] void fail_to_write(
    const std::filesystem::path& path,
    const std::filesystem::path& temporary,
    const std::string& reason) {
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  throw ConfigError(fmt::format(
      "file '{}': expected to write it, got: {}",
      path.string(),
      reason));
}

} // namespace

void write_file_atomically(
    const std::filesystem::path& path,
    const std::string& content) {
  auto temporary = path;
  temporary += fmt::format(".{}.tmp", getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << content;
  file.close();
  if (!file) {
    fail_to_write(path, temporary, std::generic_category().message(errno));
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    fail_to_write(path, temporary, error.message());
  }
}

} // namespace tandem::train
