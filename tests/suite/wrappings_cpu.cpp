#include "wrapping.h"

namespace tandem::suite {

std::vector<Wrapping> wrappings() {
  const auto dp = [](size_t replicas) {
    return WrapOptions(Strategy::kDP)
        .dp(DataParallelOptions().devices(
            std::vector<at::Device>(replicas, at::kCPU)));
  };
  const WrapOptions ddp(Strategy::kDDP);
  return {
      {"single", WrapOptions(Strategy::kSingle), at::kCPU, 1, 1},
      {"dp on 1", dp(1), at::kCPU, 1, 1},
      {"dp on 2", dp(2), at::kCPU, 1, 2},
      {"dp on 3", dp(3), at::kCPU, 1, 3},
      {"ddp of 1", ddp, at::kCPU, 1, 1},
      {"ddp of 2", ddp, at::kCPU, 2, 2},
      {"ddp of 3", ddp, at::kCPU, 3, 3},
  };
}

} // namespace tandem::suite
