#include <tandem/sim/sim.h>

#include "wrapping.h"

namespace tandem::suite {

std::vector<Wrapping> wrappings() {
  sim::init({.devices = 4});
  const auto dp = [](int64_t replicas) {
    std::vector<at::Device> devices;
    for (int64_t index = 0; index < replicas; ++index) {
      devices.push_back(sim::device(index));
    }
    return WrapOptions(Strategy::kDP)
        .dp(DataParallelOptions().devices(devices));
  };
  const WrapOptions ddp(Strategy::kDDP);
  const auto first = sim::device(0);
  return {
      {"single on sim", WrapOptions(Strategy::kSingle), first, 1, 1},
      {"dp on 2 sim devices", dp(2), first, 1, 2},
      {"dp on 4 sim devices", dp(4), first, 1, 4},
      {"ddp of 2 on sim devices", ddp, first, 2, 2},
      {"ddp of 3 on sim devices", ddp, first, 3, 3},
  };
}

} // namespace tandem::suite
