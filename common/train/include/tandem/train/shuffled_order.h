#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::train {

/// The numbers 0 to `size` - 1 in the order that belongs to (`seed`, `epoch`):
/// the same for ever, on every platform and for every world size.
///
/// The generator is `std::mt19937_64`, whose output the C++ standard fixes,
/// seeded with `mix(mix(seed) + epoch)`, where `mix` is the finalizer of
/// SplitMix64 applied to its argument plus 0x9e3779b97f4a7c15. The shuffle is
/// Fisher-Yates from the back: for i = size - 1 down to 1, swap element i with
/// element draw(i + 1). `draw(n)` takes 64-bit numbers x until one is at least
/// 2^64 mod n, and returns x mod n: no remainder is favoured.
std::vector<size_t> shuffled_order(size_t size, uint64_t seed, uint64_t epoch);

} // namespace tandem::train
