#pragma once

#include <string>

namespace tandem::bench {

/// **Throws** `Error`: `what`, and what the system says of the errno `code`.
[[noreturn]] void throw_system_error(const std::string& what, int code);

} // namespace tandem::bench
