#include "error_record.h"

#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <system_error>

#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace tandem::comm::launch {

namespace {

using Json = nlohmann::json;
using Time = std::chrono::system_clock::time_point;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxMessageBytes = 4096;

Time modification_time(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return {};
  }
  const auto& time = status.st_mtim;
  return Time(std::chrono::duration_cast<Time::duration>(
      seconds(time.tv_sec) + nanoseconds(time.tv_nsec)));
}

// The member, or null.
Json member(const Json& object, const char* name) {
  return object.is_object() ? object.value(name, Json()) : Json();
}

// Whole seconds, as a number or as text.
std::optional<seconds> as_seconds(const Json& value) {
  if (value.is_number()) {
    return seconds(value.get<int64_t>());
  }
  if (!value.is_string()) {
    return std::nullopt;
  }
  const auto text = value.get<std::string>();
  int64_t number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::make_optional(seconds(number))
                                  : std::nullopt;
}

} // namespace

std::optional<ErrorRecord> read_error_file(const std::string& path) {
  std::ifstream file(path);
  const std::string text{
      std::istreambuf_iterator<char>(file),
      std::istreambuf_iterator<char>()};
  const auto record =
      Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  // Signal handlers of torch write the message as plain text.
  const auto message = member(record, "message");
  const auto words = message.is_string() ? message : member(message, "message");
  if (!words.is_string()) {
    return std::nullopt;
  }
  const auto stamp = as_seconds(
      message.is_string() ? member(record, "timestamp")
                          : member(member(message, "extraInfo"), "timestamp"));
  const auto written = modification_time(path);
  const bool refines = !stamp ||
      std::chrono::floor<seconds>(written.time_since_epoch()) == *stamp;
  return ErrorRecord{
      words.get<std::string>().substr(0, kMaxMessageBytes),
      refines ? written : Time(*stamp)};
}

} // namespace tandem::comm::launch
