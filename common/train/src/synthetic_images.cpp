#include <tandem/train/synthetic_images.h>

#include <numbers>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>

namespace tandem::train {

namespace {

constexpr int64_t kSyntheticSidePixels = 28;
constexpr int64_t kSyntheticClasses = 10;

// Radians per pixel along x and y: half a turn of directions over the classes.
at::Tensor wave_numbers(const at::Tensor& labels) { // [N] -> [N, 2]
  const auto angle =
      labels.to(at::kFloat) * (std::numbers::pi / kSyntheticClasses);
  const auto turns = (labels.remainder(2) + 2).to(at::kFloat);
  const auto scale = turns * (2 * std::numbers::pi / kSyntheticSidePixels);
  return at::stack({angle.cos() * scale, angle.sin() * scale}, 1);
}

} // namespace

ImageDataSet make_synthetic_images(size_t num_samples, uint64_t seed) {
  const auto count = static_cast<int64_t>(num_samples);
  auto generator = at::detail::createCPUGenerator(seed);
  const auto labels =
      at::arange(count, at::kLong).remainder(kSyntheticClasses); // [N]
  const auto wave = wave_numbers(labels).view({count, 2, 1, 1});
  const auto phase =
      at::rand({count, 1, 1}, generator, at::kFloat) * std::numbers::pi;
  const auto pixel = at::arange(kSyntheticSidePixels, at::kFloat);
  const auto value =
      (wave.select(1, 0) * pixel.view({1, 1, kSyntheticSidePixels}) +
       wave.select(1, 1) * pixel.view({1, kSyntheticSidePixels, 1}) + phase)
          .sin(); // [N, H, W]
  const auto noise = at::randn(value.sizes(), generator, at::kFloat);
  const auto bytes =
      (value * 64 + noise * 32 + 128).clamp(0, 255).to(at::kByte);
  return {bytes.unsqueeze(1), labels, {0.5, 0.25}};
}

} // namespace tandem::train
