#include "tandem_catch.h"

#include <filesystem>

#include "child_process.h"

using tandem::test::ChildProcess;
using tandem::test::count_of;

TEST_CASE("mpirun starts a program that meets by its variables", "[launch]") {
  const std::string mpirun = "/usr/bin/mpirun";
  if (!std::filesystem::exists(mpirun)) {
    TANDEM_SKIP("no mpirun: scripts/setup.sh --with-mpi");
  }
  ChildProcess ranks(
      {mpirun,
       "--allow-run-as-root",
       "--oversubscribe",
       "-n",
       "3",
       TANDEM_RANK_PROGRAM,
       "meet"});
  CHECK(ranks.wait() == 0);
  CHECK(count_of("sum 6 of 3\n", ranks.out()) == 3);
}
