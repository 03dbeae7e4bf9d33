// A rank for the launcher's tests. Its arguments are done in order; "R:action"
// on rank R alone, "@A:action" and "@A:R:action" at restart A alone.
//   meet          joins the group and prints the sum of the ranks' (rank + 1)
//   ready         prints "ready <pid>"
//   say=TEXT      prints TEXT on stdout; err=TEXT on stderr
//   ignore-term   ignores SIGTERM from here on
//   hang          waits for a signal
//   throw=TEXT    fails with a ConfigError and leaves it in the error file
//   die=SIGNAL    kills itself by the signal's number; exit=CODE
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include <unistd.h>

#include <ATen/ops/full.h>

#include <tandem/comm/comm.h>
#include <tandem/comm/error_file.h>
#include <tandem/core/errors.h>

namespace {

void meet() {
  tandem::comm::init_process_group();
  auto sum = at::full({1}, static_cast<double>(tandem::comm::rank() + 1));
  tandem::comm::all_reduce(sum);
  std::cout << "sum " << sum.item<double>() << " of "
            << tandem::comm::world_size() << '\n'
            << std::flush;
  tandem::comm::barrier(); // nobody fails before all have said it
  tandem::comm::destroy_process_group();
}

void act(const std::string& action) {
  const auto equals = action.find('=');
  const auto verb = action.substr(0, equals);
  const auto value =
      equals == std::string::npos ? "" : action.substr(equals + 1);
  if (verb == "meet") {
    meet();
  } else if (verb == "ready") {
    std::cout << "ready " << ::getpid() << '\n' << std::flush;
  } else if (verb == "say") {
    std::cout << value << '\n' << std::flush;
  } else if (verb == "err") {
    std::cerr << value << '\n';
  } else if (verb == "ignore-term") {
    std::signal(SIGTERM, SIG_IGN);
  } else if (verb == "hang") {
    ::pause();
  } else if (verb == "die") {
    std::signal(std::stoi(value), SIG_DFL);
    std::raise(std::stoi(value));
  } else if (verb == "throw") {
    throw tandem::ConfigError(value);
  } else if (verb == "exit") {
    std::exit(std::stoi(value));
  } else {
    throw tandem::ConfigError("action: got '" + action + "'");
  }
}

bool is_value_of(const std::string& value, const char* variable) {
  const char* const own = std::getenv(variable);
  return own != nullptr && value == own;
}

// `action` without what stands before its colons; empty if that is another's.
std::string own_part(const std::string& action) {
  const auto colon = action.find(':');
  if (colon == std::string::npos) {
    return action;
  }
  const auto who = action.substr(0, colon);
  const bool mine = who.starts_with('@')
      ? is_value_of(who.substr(1), "TORCHELASTIC_RESTART_COUNT")
      : is_value_of(who, "RANK");
  return mine ? own_part(action.substr(colon + 1)) : "";
}

} // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) {
      if (const auto action = own_part(argv[i]); !action.empty()) {
        act(action);
      }
    }
  } catch (...) {
    std::cerr << tandem::message_of(std::current_exception()) << '\n';
    tandem::comm::write_error_file(std::current_exception());
    return 1;
  }
}
