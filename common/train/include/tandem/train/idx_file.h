#pragma once

#include <cstdint>
#include <filesystem>

#include <ATen/core/Tensor.h>

namespace tandem::train {

/// Reads an idx file of bytes (the format of MNIST and its successors), plain
/// or gzipped, as a uint8 tensor of the file's shape.
///
/// **Throws** `ConfigError` naming the file, what was expected and what was
/// found: unreadable, damaged, another element type, not `num_dims` dimensions,
/// shorter or longer than its header says.
/// **Source**: the idx format as documented with MNIST.
at::Tensor read_idx_file(const std::filesystem::path& path, int64_t num_dims);

} // namespace tandem::train
