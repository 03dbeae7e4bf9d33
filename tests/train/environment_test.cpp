#include <tandem/train/environment.h>

#include <ATen/Parallel.h>
#include <torch/torch.h>
#include <torch/version.h>

#include "tandem_catch.h"

TEST_CASE("the environment is this process's", "[train]") {
  const auto environment = tandem::train::current_environment();
  CHECK(environment.torch == TORCH_VERSION);
  CHECK_FALSE(environment.tandem.empty());
  CHECK(environment.cores >= 1);
  CHECK(environment.threads_per_worker == at::get_num_threads());
}

TEST_CASE(
    "peak memory grows by what was touched, and stays until it is reset",
    "[train]") {
  constexpr int64_t touched_bytes = int64_t{256} << 20;
  const auto before = tandem::train::peak_resident_bytes();
  { const auto touched = torch::ones({touched_bytes}, torch::kByte); }
  const auto after = tandem::train::peak_resident_bytes();
  CHECK(after - before >= touched_bytes * 9 / 10);
  CHECK(after - before < touched_bytes * 2);
  tandem::train::reset_peak_resident_bytes();
  CHECK(tandem::train::peak_resident_bytes() < after - touched_bytes / 2);
}
