#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "flight_recorder.h"

namespace tandem::comm {

/// One group's recorder, and the file that it is written to.
///
/// **Threads**: any.
class FlightLog {
 public:
  /// Writes no file.
  FlightLog() = default;
  /// Writes to a file in `folder`. `store` is the group's.
  FlightLog(
      std::filesystem::path folder,
      c10::intrusive_ptr<c10d::Store> store,
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
  /// Writes the file once another rank has told of a failure: this one may hang
  /// where it never hears of it.
  void look_for_failure() noexcept;

 private:
  void write_because(const std::string& reason) noexcept;
  void write() noexcept;

  FlightRecorder recorder_;
  std::filesystem::path folder_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::mutex mutex_;
  /// Without what the recorder knows.
  FlightRecord record_;
};

} // namespace tandem::comm
