#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tandem/train/image_data_set.h>

namespace tandem::train {

enum class Split { kTrain, kTest };

/// Classes of Fashion-MNIST, and of whatever is read in its place.
inline constexpr int64_t kFashionMnistClasses = 10;

/// Folders in which Fashion-MNIST is looked for where none is given: that of
/// Debian's package dataset-fashion-mnist.
const std::vector<std::filesystem::path>& fashion_mnist_default_dirs();

/// `dir` if not empty, else the first default folder that holds the data set.
/// **Throws** `ConfigError` naming the folders searched and the remedy.
std::filesystem::path find_fashion_mnist(const std::filesystem::path& dir = {});

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or with .gz,
/// from `dir`: 28 x 28 grey images of ten classes, 60,000 and 10,000 in the
/// original, any number in files of one's own.
/// **Throws** `ConfigError` naming the file, what was expected and what found.
ImageDataSet load_fashion_mnist(const std::filesystem::path& dir, Split split);

} // namespace tandem::train
