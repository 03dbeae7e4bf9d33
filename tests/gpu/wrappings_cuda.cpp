#include <c10/cuda/CUDAFunctions.h>

#include "wrapping.h"

namespace tandem::suite {

// One GPU is enough for all but the last two: a device twice for DataParallel,
// the whole Reducer over NCCL at a world of one.
std::vector<Wrapping> wrappings() {
  const at::Device first(at::kCUDA, 0);
  const WrapOptions twice = WrapOptions(Strategy::kDP)
                                .dp(DataParallelOptions()
                                        .devices({first, first})
                                        .allow_duplicate_devices(true));
  const WrapOptions world_one =
      WrapOptions(Strategy::kDDP)
          .ddp(DistributedDataParallelOptions().reduce_at_world_one(true));
  std::vector<Wrapping> all{
      {"single on cuda", WrapOptions(Strategy::kSingle), first, 1, 1},
      {"dp on one cuda device twice", twice, first, 1, 2},
      {"ddp over nccl, world of one", world_one, first, 1, 1},
  };
  const int64_t num_devices = c10::cuda::device_count();
  if (num_devices >= 2) {
    all.push_back(
        {"dp on two cuda devices",
         WrapOptions(Strategy::kDP)
             .dp(DataParallelOptions().device_ids({0, 1})),
         first,
         1,
         2});
    all.push_back(
        {"ddp over nccl, world of two",
         WrapOptions(Strategy::kDDP),
         first,
         2,
         2});
  }
  return all;
}

} // namespace tandem::suite
