#include <exception>
#include <iostream>

#include <tandem/core/errors.h>

#include "program.h"

int main(int argc, char** argv) {
  using namespace tandem;
  try {
    return bench::run_program(bench::CommandLine(argv, argv + argc));
  } catch (const ConfigError&) {
    std::cerr << "tandem: " << message_of(std::current_exception()) << '\n';
    return bench::kUsageExitCode;
  } catch (...) {
    std::cerr << "tandem: " << message_of(std::current_exception()) << '\n';
    return 1;
  }
}
