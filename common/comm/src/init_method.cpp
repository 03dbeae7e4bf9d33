#include "init_method.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "digits.h"

namespace tandem::comm {

namespace {

constexpr int64_t kMaxUrlNumber = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxUrlPort = std::numeric_limits<uint16_t>::max();

class InitMethodParser {
 public:
  explicit InitMethodParser(const std::string& url) : url_(url) {}

  InitMethod parse() {
    const auto scheme_end = url_.find("://");
    if (scheme_end == std::string::npos) {
      reject("env://, tcp://host:port or file:///path");
    }
    const auto scheme = url_.substr(0, scheme_end);
    const auto rest = url_.substr(scheme_end + 3);
    const auto question = rest.find('?');
    parse_place(scheme, rest.substr(0, question));
    if (question != std::string::npos) {
      parse_query(rest.substr(question + 1));
    }
    return method_;
  }

 private:
  [[noreturn]] void reject(const std::string& rule) const {
    throw ConfigError(
        fmt::format("init_method: expected {}, got '{}'", rule, url_));
  }

  void parse_place(const std::string& scheme, const std::string& place) {
    if (scheme == "env") {
      if (!place.empty()) {
        reject("nothing but a query after env://");
      }
    } else if (scheme == "tcp") {
      method_.kind = InitMethod::Kind::kTcp;
      parse_host_and_port(place);
    } else if (scheme == "file") {
      method_.kind = InitMethod::Kind::kFile;
      if (!place.starts_with('/') || place.ends_with('/')) {
        reject("the absolute path of a file after file://");
      }
      method_.path = place;
    } else {
      reject("env://, tcp://host:port or file:///path");
    }
  }

  void parse_host_and_port(const std::string& place) {
    const auto colon = place.rfind(':');
    if (colon == std::string::npos || colon == 0) {
      reject("tcp://host:port");
    }
    method_.host = place.substr(0, colon);
    if (method_.host.starts_with('[') && method_.host.ends_with(']')) {
      method_.host = method_.host.substr(1, method_.host.size() - 2);
    }
    method_.port = static_cast<uint16_t>(number(
        place.substr(colon + 1),
        1,
        kMaxUrlPort,
        "a port, decimal digits from 1 to 65535"));
  }

  void parse_query(std::string_view query) {
    while (!query.empty()) {
      const auto item = query.substr(0, query.find('&'));
      query.remove_prefix(std::min(query.size(), item.size() + 1));
      const auto equals = std::min(item.find('='), item.size());
      const auto name = item.substr(0, equals);
      const std::string value(item.substr(std::min(equals + 1, item.size())));
      if (name == "rank") {
        method_.rank = number(
            value,
            0,
            kMaxUrlNumber,
            "a rank, decimal digits from 0 to 2147483647");
      } else if (name == "world_size") {
        method_.world_size = number(
            value,
            1,
            kMaxUrlNumber,
            "a world_size, decimal digits from 1 to 2147483647");
      } else {
        reject("rank=.. and world_size=.. after '?'");
      }
    }
  }

  int64_t number(
      const std::string& text,
      int64_t min,
      int64_t max,
      const std::string& rule) const {
    const auto number = parse_digits(text, max);
    if (!number || *number < min) {
      reject(rule);
    }
    return *number;
  }

  const std::string& url_;
  InitMethod method_;
};

} // namespace

InitMethod parse_init_method(const std::string& url) {
  return InitMethodParser(url).parse();
}

} // namespace tandem::comm
