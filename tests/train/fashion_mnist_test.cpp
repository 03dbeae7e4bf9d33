#include <tandem/train/fashion_mnist.h>

#include <numeric>
#include <string>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/testing/temporary_directory.h>

#include "checks.h"
#include "data_files.h"
#include "tandem_catch.h"

namespace {

using tandem::ConfigError;
using tandem::testing::TemporaryDirectory;
using tandem::train::find_fashion_mnist;
using tandem::train::load_fashion_mnist;
using tandem::train::Split;
using tandem::train::test::error_of;
using tandem::train::test::idx_bytes;
using tandem::train::test::write_gzip;
using tandem::train::test::write_plain;

void write_train_files(
    const TemporaryDirectory& dir,
    uint32_t num_images,
    const std::string& labels,
    uint32_t width = 28) {
  write_gzip(
      dir.path() / "train-images-idx3-ubyte.gz",
      idx_bytes(
          {num_images, 28, width},
          std::string(size_t{num_images} * 28 * width, '\x80')));
  write_plain(
      dir.path() / "train-labels-idx1-ubyte",
      idx_bytes({static_cast<uint32_t>(labels.size())}, labels));
}

std::string train_error(const TemporaryDirectory& dir) {
  return error_of<ConfigError>(
      [&] { load_fashion_mnist(dir.path(), Split::kTrain); });
}

} // namespace

TEST_CASE(
    "files of one's own in Fashion-MNIST's format are read, gzipped or not",
    "[train]") {
  const TemporaryDirectory dir;
  write_train_files(dir, 3, {0, 9, 4});
  CHECK(find_fashion_mnist(dir.path()) == dir.path());
  const auto set = load_fashion_mnist(dir.path(), Split::kTrain);
  CHECK(set.images().sizes() == c10::IntArrayRef{3, 1, 28, 28});
  CHECK(set.labels().equal(torch::tensor({0, 9, 4}, torch::kLong)));
}

TEST_CASE("files that do not fit together are refused by name", "[train]") {
  const TemporaryDirectory dir;
  write_train_files(dir, 3, {0, 1});
  CHECK(train_error(dir).find("train-labels-idx1-ubyte") != std::string::npos);
  CHECK(train_error(dir).find("expected 3 labels") != std::string::npos);
  write_train_files(dir, 2, {0, 10});
  CHECK(train_error(dir).find("from 0 to 9, got 10") != std::string::npos);
  write_train_files(dir, 2, {0, 1}, 27);
  CHECK(train_error(dir).find("28 x 28, got 28 x 27") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          load_fashion_mnist(dir.path(), Split::kTest);
        }).find("t10k-images-idx3-ubyte") != std::string::npos);
}

TEST_CASE(
    "a folder without the data set is refused with the remedy",
    "[train]") {
  const TemporaryDirectory dir;
  const auto error =
      error_of<ConfigError>([&] { find_fashion_mnist(dir.path()); });
  CHECK(error.find(dir.path().string()) != std::string::npos);
  CHECK(error.find("dataset-fashion-mnist") != std::string::npos);
}

TEST_CASE(
    "Debian's Fashion-MNIST has 70,000 images, evenly spread over ten classes",
    "[train]") {
  const auto& dirs = tandem::train::fashion_mnist_default_dirs();
  if (!std::filesystem::exists(dirs.front())) {
    TANDEM_SKIP("the package dataset-fashion-mnist is not installed");
  }
  const auto dir = find_fashion_mnist();
  for (const auto split : {Split::kTrain, Split::kTest}) {
    const auto set = load_fashion_mnist(dir, split);
    const int64_t count = split == Split::kTrain ? 60000 : 10000;
    CHECK(set.images().size(0) == count);
    CHECK(set.labels().bincount().equal(
        torch::full({10}, count / 10, torch::kLong)));
  }
  auto train = load_fashion_mnist(dir, Split::kTrain);
  std::vector<size_t> rows(60000);
  std::iota(rows.begin(), rows.end(), size_t{0});
  const auto data = train.get_batch(rows).data;
  CHECK(std::abs(data.mean().item<double>()) < 1e-3);
  CHECK(std::abs(data.std().item<double>() - 1) < 1e-3);
}
