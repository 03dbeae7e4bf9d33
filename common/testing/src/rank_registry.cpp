#include "rank_registry.h"

#include <cstdlib>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "rank_messages.h"

namespace tandem::testing {

namespace {

using detail::RankMessage;

std::map<std::string, RankFunction>& rank_functions() {
  static std::map<std::string, RankFunction> functions;
  return functions;
}

/// The variable's value; unset from then on, so that what the rank starts is
/// not taken for a rank.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

/// Has the kernel kill this process when the one that started it ends.
void die_with_parent(const std::string& parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != parent) {
    ::_exit(1); // it ended before
  }
}

int64_t number_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::strtoll(value, nullptr, 10);
}

int run_rank_function(const std::string& name, const std::string& argument) {
  RankProcess process(
      number_variable("RANK"),
      number_variable("WORLD_SIZE"),
      argument,
      [](const std::string& what) {
        detail::write_message(detail::kPipeFd, RankMessage::kDoing, what);
      });
  try {
    const auto result = detail::find_rank_function(name)(process);
    detail::write_message(
        detail::kPipeFd,
        RankMessage::kResult,
        detail::serialize(result));
    return 0;
  } catch (...) {
    detail::write_message(
        detail::kPipeFd,
        RankMessage::kError,
        message_of(std::current_exception()));
    return 1;
  }
}

} // namespace

RankProcess::RankProcess(
    int64_t rank,
    int64_t world_size,
    std::string argument,
    std::function<void(const std::string&)> note_doing)
    : rank_(rank),
      world_size_(world_size),
      argument_(std::move(argument)),
      note_doing_(std::move(note_doing)) {}

int64_t RankProcess::rank() const {
  return rank_;
}

int64_t RankProcess::world_size() const {
  return world_size_;
}

const std::string& RankProcess::argument() const {
  return argument_;
}

void RankProcess::doing(const std::string& what) const {
  note_doing_(what);
}

RankFunctionRegistration::RankFunctionRegistration(
    const char* name,
    RankFunction function) {
  rank_functions().emplace(name, function);
}

std::optional<int> rank_process_main() {
  const auto function = take_variable(detail::kFunctionVariable);
  if (function.empty()) {
    return std::nullopt;
  }
  die_with_parent(take_variable(detail::kParentVariable));
  ::fcntl(detail::kPipeFd, F_SETFD, FD_CLOEXEC);
  return run_rank_function(function, take_variable(detail::kArgumentVariable));
}

namespace detail {

RankFunction find_rank_function(const std::string& name) {
  const auto found = rank_functions().find(name);
  if (found == rank_functions().end()) {
    throw ConfigError(fmt::format(
        "rank function: expected a registered one, got '{}'. Define it with "
        "TANDEM_RANK_FUNCTION",
        name));
  }
  return found->second;
}

} // namespace detail
} // namespace tandem::testing
