#include <tandem/train/synthetic_images.h>

#include <torch/torch.h>

#include "tandem_catch.h"

using tandem::train::make_synthetic_images;

TEST_CASE("synthetic images depend on the seed alone", "[train]") {
  const auto one = make_synthetic_images(20, 1);
  torch::manual_seed(99);
  CHECK(one.images().equal(make_synthetic_images(20, 1).images()));
  CHECK_FALSE(one.images().equal(make_synthetic_images(20, 2).images()));
  CHECK(one.images().sizes() == c10::IntArrayRef{20, 1, 28, 28});
  CHECK(one.labels().equal(torch::arange(20).remainder(10)));
}

TEST_CASE("synthetic images can be told apart", "[train]") {
  // Energy at each class's frequency: the pattern is there whatever its phase.
  const auto set = make_synthetic_images(200, 3);
  const auto spectrum =
      torch::fft::rfft2(set.images().to(torch::kFloat).squeeze(1) - 128)
          .abs()
          .flatten(1);
  const auto normalized = spectrum / spectrum.norm(2, 1, true);
  const auto centres = torch::stack([&] {
    std::vector<torch::Tensor> means;
    for (int64_t label = 0; label < 10; ++label) {
      means.push_back(
          normalized.index({set.labels().eq(label)}).slice(0, 0, 10).mean(0));
    }
    return means;
  }());
  const auto nearest = torch::cdist(normalized, centres).argmin(1);
  const auto correct = nearest.eq(set.labels()).to(torch::kFloat).mean();
  CHECK(correct.item<double>() > 0.9);
}
