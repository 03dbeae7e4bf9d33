#pragma once

#include <string>

namespace tandem::test {

/// A port of the loopback interface that nobody listens on now.
std::string unused_port();

} // namespace tandem::test
