#pragma once

#include <exception>

namespace tandem::comm {

/// Tells the launcher what ended this rank: writes `error`, its type and the
/// time to the file that the variable TORCHELASTIC_ERROR_FILE names, as
/// torchrun and `tandem launch` read it. Does nothing if it is not set, or the
/// file cannot be written.
///
/// Example:
/// ```cpp
/// int main() {
///   try {
///     train();
///   } catch (const std::exception& error) {
///     std::cerr << error.what() << '\n';
///     tandem::comm::write_error_file(std::current_exception());
///     return 1;
///   }
/// }
/// ```
void write_error_file(const std::exception_ptr& error) noexcept;

} // namespace tandem::comm
