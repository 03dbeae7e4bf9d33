#include <tandem/train/image_data_set.h>

#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>

#include "checks.h"
#include "tandem_catch.h"

using tandem::ShapeError;
using tandem::train::ImageDataSet;
using tandem::train::test::error_of;

TEST_CASE("a batch has the rows asked for, in order, normalised", "[train]") {
  const auto images =
      torch::arange(12, torch::kByte).view({3, 1, 2, 2}); // 0 to 11
  const auto labels = torch::tensor({7, 8, 9}, torch::kLong);
  ImageDataSet set(images, labels, {0.5, 0.25});
  CHECK(set.size() == 3);
  const auto batch = set.get_batch(std::vector<size_t>{2, 0, 2});
  CHECK(batch.target.equal(torch::tensor({9, 7, 9}, torch::kLong)));
  const auto bytes =
      torch::tensor({8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11}, torch::kFloat)
          .view({3, 1, 2, 2});
  CHECK(batch.data.allclose((bytes / 255 - 0.5) / 0.25));
}

TEST_CASE("a data set refuses images and labels that do not fit", "[train]") {
  const auto images = torch::zeros({3, 1, 2, 2}, torch::kByte);
  const auto labels = torch::zeros({3}, torch::kLong);
  const auto make = [](const torch::Tensor& i, const torch::Tensor& l) {
    return error_of<ShapeError>([&] { ImageDataSet(i, l); });
  };
  CHECK(make(images, labels).empty());
  CHECK(
      make(images.to(torch::kFloat), labels).find("Float") !=
      std::string::npos);
  CHECK(make(images[0], labels).find("[1, 2, 2]") != std::string::npos);
  CHECK(
      make(images, labels.slice(0, 1)).find("got Long [2]") !=
      std::string::npos);
  CHECK(
      make(images, labels.to(torch::kInt)).find("got Int [3]") !=
      std::string::npos);
}

TEST_CASE("a row beyond the data set is refused by number", "[train]") {
  ImageDataSet set(
      torch::zeros({3, 1, 2, 2}, torch::kByte),
      torch::zeros({3}, torch::kLong));
  const auto error = error_of<ShapeError>([&] {
    set.get_batch(std::vector<size_t>{0, 3});
  });
  CHECK(error.find("below 3, got 3") != std::string::npos);
}
