#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::comm {

/// Where ranks meet, as a URL says it.
struct InitMethod {
  enum class Kind {
    /// env://
    kEnvironment,
    /// tcp://host:port: rank 0 hosts the store there.
    kTcp,
    /// file:///path: a file that all ranks can lock.
    kFile,
  };
  Kind kind = Kind::kEnvironment;
  std::string host;
  uint16_t port = 0;
  std::string path;
  /// From `?rank=..&world_size=..`.
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
};

/// **Throws** `ConfigError` showing `url` and the rule.
InitMethod parse_init_method(const std::string& url);

} // namespace tandem::comm
