#include "workloads/image_data.h"

#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/train/fashion_mnist.h>
#include <tandem/train/synthetic_images.h>

namespace tandem::bench {

namespace {

constexpr size_t kSyntheticTrainSamples = 12'000;
constexpr size_t kSyntheticTestSamples = 2'000;

} // namespace

ImageData load_image_data(const ImageDataOptions& options) {
  if (options.name == "synthetic") {
    return {
        train::make_synthetic_images(kSyntheticTrainSamples, options.seed),
        train::make_synthetic_images(kSyntheticTestSamples, options.seed + 1)};
  }
  if (options.name != "fashion-mnist") {
    throw ConfigError(fmt::format(
        "--data: expected fashion-mnist or synthetic, got '{}'",
        options.name));
  }
  const auto dir = train::find_fashion_mnist(options.dir);
  return {
      train::load_fashion_mnist(dir, train::Split::kTrain),
      train::load_fashion_mnist(dir, train::Split::kTest)};
}

} // namespace tandem::bench
