#include <tandem/train/shuffled_order.h>

#include <numeric>
#include <random>
#include <utility>

namespace tandem::train {

namespace {

uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

uint64_t draw(std::mt19937_64& generator, uint64_t bound) {
  const uint64_t two_to_64_mod_bound = -bound % bound;
  uint64_t value = generator();
  while (value < two_to_64_mod_bound) {
    value = generator();
  }
  return value % bound;
}

} // namespace

std::vector<size_t> shuffled_order(size_t size, uint64_t seed, uint64_t epoch) {
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 generator(mix(mix(seed) + epoch));
  for (size_t i = size; i-- > 1;) {
    std::swap(order[i], order[draw(generator, i + 1)]);
  }
  return order;
}

} // namespace tandem::train
