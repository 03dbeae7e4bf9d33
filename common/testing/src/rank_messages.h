#pragma once

#include <functional>
#include <string>

#include <tandem/testing/rank_processes.h>

namespace tandem::testing::detail {

/// What a rank's process tells the one that started it, through a pipe: one
/// letter for the kind, the length as text up to a colon, the bytes.
enum class RankMessage : char { kDoing = 'd', kResult = 'r', kError = 'e' };

/// **Throws** `Error` if the pipe is closed.
void write_message(int fd, RankMessage kind, const std::string& payload);

/// Puts messages together from the pieces in which they arrive.
class MessageReader {
 public:
  using Receiver = std::function<void(RankMessage, std::string payload)>;

  /// Takes the next piece and hands over what it completes.
  void feed(const std::string& piece, const Receiver& receive);

 private:
  std::string pending_;
};

std::string serialize(const RankResult& result);
RankResult deserialize(const std::string& bytes);

} // namespace tandem::testing::detail
