#include "devices.h"
#include "wrapping.h"

namespace tandem::suite {

namespace {

DataParallelOptions replicas(size_t count) {
  return DataParallelOptions()
      .devices(test::devices(count))
      .allow_duplicate_devices(true);
}

Wrapping dp(size_t count) {
  return {
      "dp on " + std::to_string(count),
      WrapOptions(Strategy::kDP).dp(replicas(count)),
      test::device(),
      1,
      static_cast<int64_t>(count)};
}

Wrapping ddp(int64_t processes) {
  return {
      "ddp of " + std::to_string(processes),
      WrapOptions(Strategy::kDDP),
      test::device(),
      processes,
      processes};
}

} // namespace

// Ranks of NCCL need a GPU each, which there may not be: the whole Reducer runs
// over it at a world of one.
std::vector<Wrapping> wrappings() {
  std::vector<Wrapping> all{
      {"single", WrapOptions(Strategy::kSingle), test::device(), 1, 1},
      dp(1),
      dp(2),
      dp(3),
      dp(4)};
  if (test::device_type() != at::kCUDA) {
    for (const int64_t processes : {1, 2, 3}) {
      all.push_back(ddp(processes));
    }
    return all;
  }
  auto world_of_one = ddp(1);
  world_of_one.options.ddp(
      DistributedDataParallelOptions().reduce_at_world_one(true));
  all.push_back(world_of_one);
  if (test::devices(2).back() != test::device()) {
    all.push_back(ddp(2));
  }
  return all;
}

} // namespace tandem::suite
