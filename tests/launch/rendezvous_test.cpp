#include "tandem_catch.h"

#include <filesystem>

#include "child_process.h"

using tandem::test::ChildProcess;
using tandem::test::count_of;

TEST_CASE(
    "torchrun starts a program that meets over its agent's store",
    "[launch]") {
  const std::string bin = TANDEM_TORCH_VENV "/bin/";
  if (!std::filesystem::exists(bin + "torchrun")) {
    TANDEM_SKIP("no torchrun beside this LibTorch");
  }
  ChildProcess import({bin + "python", "-c", "import torch"});
  if (import.wait() != 0) {
    TANDEM_SKIP("import torch fails: scripts/setup.sh --with-python");
  }
  ChildProcess torchrun(
      {bin + "torchrun",
       "--no-python",
       "--nproc-per-node",
       "2",
       "--rdzv-backend",
       "c10d",
       "--rdzv-endpoint",
       "127.0.0.1:0",
       TANDEM_RANK_PROGRAM,
       "meet"});
  CHECK(torchrun.wait() == 0);
  CHECK(count_of("sum 3 of 2\n", torchrun.out()) == 2);
}
