#include "demo/demo_table.h"

#include "tandem_catch.h"

using tandem::bench::demo_table;
using tandem::train::ResultRow;

namespace {

ResultRow trained(
    const std::string& strategy,
    int64_t threads,
    double samples_per_s) {
  ResultRow row;
  row.strategy = strategy;
  row.threads_per_worker = threads;
  row.samples_per_s = samples_per_s;
  return row;
}

} // namespace

TEST_CASE("the demo's table shows what was measured and no more", "[bench]") {
  auto one = trained("single", 1, 2000);
  one.losses = {{1, 2.3}, {10, 1.40771}};
  one.test_loss = 0.30566;
  one.test_accuracy = 0.8885;
  one.peak_bytes = {int64_t{500} << 20};
  auto ddp = trained("ddp", 1, 3000);
  ddp.workers = 2;
  ddp.peak_bytes = {int64_t{400} << 20, int64_t{300} << 20};
  CHECK(
      demo_table({one, trained("single", 2, 2500), ddp}) ==
      "strategy workers threads   loss at  loss on accuracy  images/s   times "
      "1 times all  memory\n"
      "                    each   step 10     test        %              "
      "thread     cores     MiB\n"
      "single         1       1    1.4077   0.3057    88.85      2000      "
      "1.00      0.80     500\n"
      "single         1       2         -        -        -      2500      "
      "1.25      1.00       -\n"
      "ddp            2       1         -        -        -      3000      "
      "1.50      1.20     700\n");
}

TEST_CASE("without a baseline the demo's table has no ratio", "[bench]") {
  const auto table = demo_table({trained("dp", 1, 3000)});
  CHECK(table.find("3000         -         -       -\n") != std::string::npos);
}
