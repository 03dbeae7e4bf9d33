#include "processes/system_error.h"

#include <system_error>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::bench {

void throw_system_error(const std::string& what, int code) {
  throw Error(
      fmt::format("{}: {}", what, std::generic_category().message(code)));
}

} // namespace tandem::bench
