#include <tandem/comm/error_file.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <typeinfo>

#include <c10/util/Type.h>
#include <nlohmann/json.hpp>

#include <tandem/core/errors.h>

namespace tandem::comm {

namespace {

// "ConfigError: ", as Python names what it raises; empty for what is no
// std::exception.
std::string type_prefix(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    const auto name = c10::demangle(typeid(exception).name());
    const auto scope = name.rfind("::");
    return (scope == std::string::npos ? name : name.substr(scope + 2)) + ": ";
  } catch (...) {
    return "";
  }
}

std::string unix_seconds() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(
      std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count());
}

} // namespace

void write_error_file(const std::exception_ptr& error) noexcept {
  const char* const path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0' || !error) {
    return;
  }
  try {
    const nlohmann::json record{
        {"message",
         {{"message", type_prefix(error) + message_of(error)},
          {"extraInfo", {{"timestamp", unix_seconds()}}}}}};
    // Bytes that are no UTF-8 are replaced: they may stand in a file's name.
    std::ofstream(path) << record.dump(
        -1,
        ' ',
        false,
        nlohmann::json::error_handler_t::replace);
  } catch (const std::exception&) {
    return; // the error itself is what the caller is about to tell
  }
}

} // namespace tandem::comm
