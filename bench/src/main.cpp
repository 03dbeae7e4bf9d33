#include <exception>
#include <iostream>

#include <tandem/comm/error_file.h>
#include <tandem/core/errors.h>

#include "program.h"

int main(int argc, char** argv) {
  using namespace tandem;
  try {
    return bench::run_program(bench::CommandLine(argv, argv + argc));
  } catch (const ConfigError&) {
    comm::write_error_file(std::current_exception());
    std::cerr << "tandem: " << message_of(std::current_exception()) << '\n';
    return bench::kUsageExitCode;
  } catch (...) {
    comm::write_error_file(std::current_exception());
    std::cerr << "tandem: " << message_of(std::current_exception()) << '\n';
    return 1;
  }
}
