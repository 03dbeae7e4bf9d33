#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <tandem/train/image_data_set.h>

namespace tandem::bench {

/// What `--data` and its kin say.
struct ImageDataOptions {
  /// "fashion-mnist" or "synthetic".
  std::string name = "fashion-mnist";
  /// Folder of idx files; empty: where the distribution has them.
  std::filesystem::path dir;
  /// Of the synthetic images.
  uint64_t seed = 0;
};

struct ImageData {
  train::ImageDataSet train;
  train::ImageDataSet test;
};

/// **Throws** `ConfigError` for an unknown name, or if files are missing or
/// damaged.
ImageData load_image_data(const ImageDataOptions& options);

} // namespace tandem::bench
