#include <tandem/testing/rank_processes.h>

#include "before_tests.h"

namespace tandem::test {

std::optional<int> run_as_rank() {
  return testing::rank_process_main();
}

} // namespace tandem::test
