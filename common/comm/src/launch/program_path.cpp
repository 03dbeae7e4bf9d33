#include "program_path.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tandem/comm/launcher.h>

namespace tandem::comm::launch {

namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

// 0, or the errno that running `path` would give.
int why_not_executable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno;
  }
  if (S_ISDIR(status.st_mode)) {
    return EISDIR;
  }
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

[[noreturn]] void throw_not_executable(const std::string& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  throw ProgramError(
      fmt::format(
          "[launch] program '{}': expected an executable file, got: {}",
          path,
          std::strerror(error)),
      missing ? kNotFound : kNotExecutable);
}

} // namespace

std::string find_program(
    const std::string& name,
    const std::string& search_path) {
  if (name.find('/') != std::string::npos) {
    if (const int error = why_not_executable(name)) {
      throw_not_executable(name, error);
    }
    return name;
  }
  std::string unusable;
  int error = 0;
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    auto path = (folder.empty() ? "." : folder) + "/" + name;
    const int found = why_not_executable(path);
    if (found == 0) {
      return path;
    }
    if (found == EACCES || found == EISDIR) {
      unusable = path;
      error = found;
    }
  }
  if (!unusable.empty()) {
    throw_not_executable(unusable, error);
  }
  throw ProgramError(
      fmt::format(
          "[launch] program '{}': expected an executable in PATH, got none "
          "there. Give its path, './{}' for one in this folder.",
          name,
          name),
      kNotFound);
}

} // namespace tandem::comm::launch
