#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "file_descriptor.h"

namespace tandem::comm::launch {

/// Messages between two launchers: JSON objects with a "type", one a line, over
/// a socket that does not block. Both send a beat each second, so that an end
/// that is cut off, or stopped, is noticed.
class MessageChannel {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `silence_limit`: how long the other end may say nothing.
  MessageChannel(
      FileDescriptor socket,
      std::chrono::milliseconds silence_limit);

  /// -1 once it is lost.
  int fd() const {
    return socket_.get();
  }
  /// The other end's.
  const std::string& address() const {
    return address_;
  }
  /// From here on messages may be long: a stranger's are not taken.
  void trust() {
    trusted_ = true;
  }

  /// Sends it now, or with the next `exchange`.
  void send(const nlohmann::json& message);
  /// Sends what is due, and returns the messages that have come.
  std::vector<nlohmann::json> exchange(Time now);

  /// Why no more will come; empty while the channel stands.
  const std::string& why_lost() const {
    return why_lost_;
  }

 private:
  void flush();
  void read_some(Time now);
  std::vector<nlohmann::json> take_lines();
  void lose(const std::string& why);

  FileDescriptor socket_;
  std::string address_;
  std::chrono::milliseconds silence_limit_;
  Time last_heard_;
  Time last_beat_;
  bool trusted_ = false;
  std::string unsent_;
  std::string received_;
  std::string why_lost_;
};

} // namespace tandem::comm::launch
