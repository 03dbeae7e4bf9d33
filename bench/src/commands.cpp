#include "commands.h"

namespace tandem::bench {

std::vector<Command> all_commands() {
  return {launch_command(), doctor_command()};
}

} // namespace tandem::bench
