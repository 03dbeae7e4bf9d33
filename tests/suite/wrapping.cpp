#include "wrapping.h"

#include <ostream>

#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

namespace tandem::suite {

at::Tensor Worker::share(const at::Tensor& global_batch) const {
  const int64_t rows = global_batch.size(0) / world_size;
  return global_batch.narrow(0, rank * rows, rows).to(device);
}

at::Tensor Worker::uneven_share(const at::Tensor& global_batch) const {
  const int64_t first_rows = global_batch.size(0) - (world_size - 1);
  const auto own = rank == 0 ? global_batch.narrow(0, 0, first_rows)
                             : global_batch.narrow(0, first_rows + rank - 1, 1);
  return own.to(device);
}

std::ostream& operator<<(std::ostream& stream, const Wrapping& wrapping) {
  return stream << wrapping.name;
}

Worker rank_worker(const Wrapping& wrapping, int64_t rank) {
  Worker worker{
      rank,
      wrapping.num_processes,
      wrapping.device,
      wrapping.options};
  if (!wrapping.device.is_cpu() && wrapping.num_processes > 1) {
    worker.device =
        at::Device(wrapping.device.type(), static_cast<int8_t>(rank));
    worker.options->ddp(DistributedDataParallelOptions(wrapping.options.ddp())
                            .device(worker.device));
  }
  return worker;
}

std::vector<std::vector<at::Tensor>> run(
    const Wrapping& wrapping,
    const Body& body) {
  if (wrapping.options.strategy() != Strategy::kDDP) {
    return {body({0, 1, wrapping.device, wrapping.options})};
  }
  return testing::run_ranks(
      wrapping.num_processes,
      [&](testing::RankContext& context) {
        return body(rank_worker(wrapping, context.rank()));
      },
      testing::RunRanksOptions().device(wrapping.device));
}

Tolerance tolerance_for(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return {1e-10, 1e-10};
    case at::kFloat:
      return {1.3e-6, 5e-5};
    case at::kBFloat16:
      return {1e-2, 1e-2};
    default:
      return {0, 0};
  }
}

void check_equals_plain(const Wrapping& wrapping, const Body& body) {
  const auto expected = body({});
  const auto results = run(wrapping, body);
  for (size_t process = 0; process < results.size(); ++process) {
    REQUIRE(results[process].size() == expected.size());
    for (size_t index = 0; index < expected.size(); ++index) {
      INFO(wrapping.name << ", process " << process << ", tensor " << index);
      REQUIRE(results[process][index].defined() == expected[index].defined());
      if (!expected[index].defined()) {
        continue;
      }
      const auto actual = results[process][index].cpu();
      const auto limit = tolerance_for(expected[index].scalar_type());
      REQUIRE(actual.sizes() == expected[index].sizes());
      CHECK(actual.allclose(expected[index], limit.relative, limit.absolute));
    }
  }
}

} // namespace tandem::suite
