#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "flight_recorder.h"

namespace tandem::comm {

/// A name for the group of `store` that all its ranks come to, whoever asks
/// first. **Throws** `c10::DistNetworkError` if the store is lost.
std::string shared_group_name(c10d::Store& store);

/// One group's recorder, and the file that it is written to.
///
/// **Threads**: any.
class FlightLog {
 public:
  /// Writes no file.
  FlightLog() = default;
  /// Writes to a file in `folder`.
  FlightLog(
      std::filesystem::path folder,
      std::string group,
      int64_t rank,
      int64_t size);

  FlightRecorder& recorder() {
    return recorder_;
  }
  const std::filesystem::path& folder() const {
    return folder_;
  }

  /// Writes down a failure, of which the file tells from then on.
  void write_failure(
      const std::string& reason,
      const std::string& failure,
      const std::vector<int64_t>& missing) noexcept;
  /// Writes the file anew, as asked for by a signal.
  void write_as_asked() noexcept;

 private:
  void write() noexcept;

  FlightRecorder recorder_;
  std::filesystem::path folder_;
  std::mutex mutex_;
  /// Without what the recorder knows.
  FlightRecord record_;
};

} // namespace tandem::comm
