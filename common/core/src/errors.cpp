#include <tandem/core/errors.h>

#include <fmt/format.h>

namespace tandem {

namespace {

std::string describe_failures(const std::vector<ReplicaFailure>& failures) {
  std::string text;
  for (const auto& failure : failures) {
    text += fmt::format(
        "{}[dp replica {} on {}] forward failed: {}",
        text.empty() ? "" : "\n",
        failure.replica,
        failure.device.str(),
        message_of(failure.exception));
  }
  return text;
}

} // namespace

Error::Error(std::string message) : c10::Error(std::move(message)) {}

ReplicaError::ReplicaError(std::vector<ReplicaFailure> failures)
    : Error(describe_failures(failures)), failures_(std::move(failures)) {}

std::string message_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

} // namespace tandem
