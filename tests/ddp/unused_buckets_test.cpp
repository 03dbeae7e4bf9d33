#include "support.h"

#include <cstdint>
#include <string>
#include <vector>

#include "choice.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

TEST_CASE("buckets do not wait for what is known to be unused", "[ddp]") {
  run_ranks(2, [](RankContext&) {
    Choice net;
    DistributedDataParallel model(
        net,
        Options()
            .find_unused_parameters(true)
            .first_bucket_bytes(1)
            .bucket_cap_bytes(1));
    // The bucket of the last layer comes first.
    for (int64_t step = 0; step < 2; ++step) {
      model(number(1), 0b011).sum().backward();
    }
    const auto data = model->logging_data();
    TORCH_CHECK(data.bucket_launch_times.size() == 3);
    const auto& first_used =
        data.bucket_params[0] == std::vector<std::string>{"layers.2.weight"}
        ? data.bucket_launch_times[1]
        : data.bucket_launch_times[0];
    TORCH_CHECK(
        first_used < data.last_gradient_time + 1e-9,
        first_used,
        " of ",
        data.last_gradient_time);
  });
}

TEST_CASE("buckets that no rank reaches can be left out", "[ddp][DDP-39]") {
  for (const bool is_skipped : {false, true}) {
    run_ranks(2, [&](RankContext& context) {
      Choice net;
      DistributedDataParallel model(
          net,
          Options()
              .find_unused_parameters(true)
              .skip_all_reduce_unused_params(is_skipped)
              .first_bucket_bytes(1)
              .bucket_cap_bytes(1));
      const auto rank = static_cast<double>(context.rank());
      model(number(rank), 0b111).sum().backward();
      model->zero_grad();
      const auto before = model->counters();
      model(number(rank), context.rank() == 0 ? 0b011 : 0b001).sum().backward();
      const auto sent = model->counters().bytes_moved - before.bytes_moved;
      const int64_t of_buckets = is_skipped ? 2 * 8 + 3 : 3 * 8;
      // One byte per parameter, and rank 0's order of the first step.
      TORCH_CHECK(sent == of_buckets + 3, sent);
      TORCH_CHECK(!net->grad(2).defined());
      TORCH_CHECK(value_of(net->grad(1)) == 0);
      TORCH_CHECK(value_of(net->grad(0)) == 0.5);
    });
  }
}

} // namespace
} // namespace tandem::test
