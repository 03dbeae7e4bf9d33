#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm::launch {

inline constexpr std::size_t kMaxLineBytes = 64 << 10;

/// The last lines of a text, each cut to a readable length.
class LineTail {
 public:
  void push(std::string_view line);
  std::vector<std::string> lines() const {
    return {lines_.begin(), lines_.end()};
  }

 private:
  std::deque<std::string> lines_;
};

/// Puts a prefix before each line of a text that arrives in pieces, and passes
/// on whole lines only.
class LinePrefixer {
 public:
  /// `tail` sees every line, without the prefix, and outlives this object.
  LinePrefixer(std::string prefix, LineTail& tail);

  /// Appends to `out` the lines that `text` completes. A line of more than
  /// `kMaxLineBytes` comes as several.
  void append(std::string_view text, std::string& out);
  /// Appends what is left of the last line, and the newline that it lacks.
  void finish(std::string& out);

 private:
  void extend(std::string_view text, std::string& out);
  void emit(std::string& out);

  std::string prefix_;
  LineTail& tail_;
  std::string line_; // the unfinished one
};

} // namespace tandem::comm::launch
