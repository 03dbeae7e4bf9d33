#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::comm::launch {

/// A folder of this launch alone, for the ranks' error files; removed with all
/// it holds when this is destroyed.
class ErrorFolder {
 public:
  /// Without a place to write, there is none.
  explicit ErrorFolder(int64_t num_ranks);
  ~ErrorFolder();
  ErrorFolder(const ErrorFolder&) = delete;
  ErrorFolder& operator=(const ErrorFolder&) = delete;

  /// Empty if there is no folder.
  std::string file_of(int64_t local_rank) const;
  /// Removes the files, for the next attempt.
  void clear() const noexcept;
  /// All that has to be removed, files first: for the guard.
  std::vector<std::string> paths() const;

 private:
  std::string path_;
  int64_t num_ranks_;
};

} // namespace tandem::comm::launch
