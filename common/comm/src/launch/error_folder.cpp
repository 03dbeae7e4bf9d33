#include "error_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

namespace tandem::comm::launch {

namespace {

// Empty if the system refuses one.
std::string make_private_folder() {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  auto path = (parent / "tandem-launch-XXXXXX").string();
  return error || ::mkdtemp(path.data()) == nullptr ? "" : path;
}

} // namespace

ErrorFolder::ErrorFolder(int64_t num_ranks)
    : path_(make_private_folder()), num_ranks_(num_ranks) {}

ErrorFolder::~ErrorFolder() {
  std::error_code error;
  if (!path_.empty()) {
    std::filesystem::remove_all(path_, error);
  }
}

std::string ErrorFolder::file_of(int64_t local_rank) const {
  return path_.empty() ? "" : fmt::format("{}/rank_{}.json", path_, local_rank);
}

void ErrorFolder::clear() const noexcept {
  for (int64_t rank = 0; rank < num_ranks_; ++rank) {
    ::unlink(file_of(rank).c_str());
  }
}

std::vector<std::string> ErrorFolder::paths() const {
  if (path_.empty()) {
    return {};
  }
  std::vector<std::string> paths;
  for (int64_t rank = 0; rank < num_ranks_; ++rank) {
    paths.push_back(file_of(rank));
  }
  paths.push_back(path_);
  return paths;
}

} // namespace tandem::comm::launch
