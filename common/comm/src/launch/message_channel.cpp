#include "message_channel.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sockets.h"
#include "text.h"

namespace tandem::comm::launch {

namespace {

using Json = nlohmann::json;

constexpr auto kBeatPause = std::chrono::seconds(1);
constexpr std::size_t kReadPieceBytes = 64 << 10;
// A hello is short; an end tells the last lines of up to hundreds of ranks.
constexpr std::size_t kMaxStrangersBytes = 4 << 10;
constexpr std::size_t kMaxTrustedBytes = 64 << 20;
constexpr auto kBeatType = "beat";

// Lines of ranks may hold bytes that are no UTF-8.
std::string line_of(const Json& message) {
  return message.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

} // namespace

MessageChannel::MessageChannel(
    FileDescriptor socket,
    std::chrono::milliseconds silence_limit)
    : socket_(std::move(socket)),
      address_(peer_address(socket_)),
      silence_limit_(silence_limit),
      last_heard_(std::chrono::steady_clock::now()),
      last_beat_(last_heard_) {}

void MessageChannel::send(const Json& message) {
  unsent_ += line_of(message);
  flush();
}

std::vector<Json> MessageChannel::exchange(Time now) {
  if (now - last_beat_ >= kBeatPause) {
    last_beat_ = now;
    unsent_ += line_of({{"type", kBeatType}});
  }
  flush();
  read_some(now);
  auto messages = take_lines();
  if (why_lost_.empty() && now - last_heard_ > silence_limit_) {
    lose(fmt::format("it said nothing for {}", format_limit(silence_limit_)));
  }
  return messages;
}

void MessageChannel::flush() {
  while (!unsent_.empty() && socket_) {
    const auto sent =
        ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return; // full, or broken: then reading says so
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
}

void MessageChannel::read_some(Time now) {
  std::array<char, kReadPieceBytes> bytes;
  const auto limit = trusted_ ? kMaxTrustedBytes : kMaxStrangersBytes;
  while (socket_) {
    const auto size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (size > 0) {
      last_heard_ = now;
      received_.append(bytes.data(), static_cast<std::size_t>(size));
    } else if (size == 0) {
      lose("it closed the connection");
    } else if (errno != EINTR) {
      if (errno != EAGAIN) {
        lose(std::strerror(errno));
      }
      return;
    }
    if (received_.size() > limit) {
      lose("it sent more than a message may hold");
    }
  }
}

std::vector<Json> MessageChannel::take_lines() {
  std::vector<Json> messages;
  std::size_t begin = 0;
  for (auto end = received_.find('\n'); end != std::string::npos;
       end = received_.find('\n', begin)) {
    auto message = Json::parse(
        received_.begin() + static_cast<std::ptrdiff_t>(begin),
        received_.begin() + static_cast<std::ptrdiff_t>(end),
        /*cb=*/nullptr,
        /*allow_exceptions=*/false);
    begin = end + 1;
    if (!message.is_object() || !message.contains("type")) {
      lose("it sent what is no message of tandem launch");
      break;
    }
    if (message["type"] != kBeatType) {
      messages.push_back(std::move(message));
    }
  }
  received_.erase(0, begin);
  return messages;
}

void MessageChannel::lose(const std::string& why) {
  if (why_lost_.empty()) {
    why_lost_ = why;
  }
  socket_.reset();
}

} // namespace tandem::comm::launch
