#include <tandem/train/fashion_mnist.h>

#include <ATen/ops/max.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/train/idx_file.h>

namespace tandem::train {

namespace {

constexpr int64_t kFashionSidePixels = 28;
// Of the original's training images.
constexpr Normalization kNormalization{0.2860, 0.3530};

std::string file_name(Split split, const std::string& kind) {
  return (split == Split::kTrain ? "train-" : "t10k-") + kind + "-ubyte";
}

// The file, or its gzipped form if only that exists.
std::filesystem::path data_file(
    const std::filesystem::path& dir,
    const std::string& name) {
  const auto plain = dir / name;
  return std::filesystem::exists(plain) ? plain : dir / (name + ".gz");
}

void check_sides(
    const std::filesystem::path& path,
    const at::Tensor& images) { // [N, H, W]
  if (images.size(1) != kFashionSidePixels ||
      images.size(2) != kFashionSidePixels) {
    throw ConfigError(fmt::format(
        "data file '{}': expected images of {} x {}, got {} x {}",
        path.string(),
        kFashionSidePixels,
        kFashionSidePixels,
        images.size(1),
        images.size(2)));
  }
}

void check_labels(
    const std::filesystem::path& path,
    const at::Tensor& labels, // [N]
    int64_t num_images) {
  if (labels.size(0) != num_images) {
    throw ConfigError(fmt::format(
        "data file '{}': expected {} labels, one for each image, got {}",
        path.string(),
        num_images,
        labels.size(0)));
  }
  const int64_t largest = num_images == 0 ? 0 : labels.max().item<int64_t>();
  if (largest >= kFashionMnistClasses) {
    throw ConfigError(fmt::format(
        "data file '{}': expected labels from 0 to {}, got {}",
        path.string(),
        kFashionMnistClasses - 1,
        largest));
  }
}

bool holds_fashion_mnist(const std::filesystem::path& dir) {
  return std::filesystem::exists(
      data_file(dir, file_name(Split::kTrain, "images-idx3")));
}

} // namespace

const std::vector<std::filesystem::path>& fashion_mnist_default_dirs() {
  static const std::vector<std::filesystem::path> dirs{
      "/usr/share/datasets/fashion-mnist"};
  return dirs;
}

std::filesystem::path find_fashion_mnist(const std::filesystem::path& dir) {
  const auto searched = dir.empty() ? fashion_mnist_default_dirs()
                                    : std::vector<std::filesystem::path>{dir};
  std::string names;
  for (const auto& candidate : searched) {
    if (holds_fashion_mnist(candidate)) {
      return candidate;
    }
    names += (names.empty() ? "" : ", ") + candidate.string();
  }
  throw ConfigError(fmt::format(
      "Fashion-MNIST: expected {} (or .gz) in {}, found none. Install Debian's "
      "package dataset-fashion-mnist, or name the folder",
      file_name(Split::kTrain, "images-idx3"),
      names));
}

ImageDataSet load_fashion_mnist(const std::filesystem::path& dir, Split split) {
  const auto images_path = data_file(dir, file_name(split, "images-idx3"));
  const auto labels_path = data_file(dir, file_name(split, "labels-idx1"));
  const auto images = read_idx_file(images_path, 3);
  const auto labels = read_idx_file(labels_path, 1);
  check_sides(images_path, images);
  check_labels(labels_path, labels, images.size(0));
  return {images.unsqueeze(1), labels.to(at::kLong), kNormalization};
}

} // namespace tandem::train
