#include "commands.h"

namespace tandem::bench {

std::vector<Command> all_commands() {
  return {
      train_command(),
      verify_command(),
      demo_command(),
      bench_command(),
      launch_command(),
      doctor_command()};
}

} // namespace tandem::bench
