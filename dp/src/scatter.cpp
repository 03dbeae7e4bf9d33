#include "scatter.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/core/tree_visitors.h>

namespace tandem::detail {

namespace {

/// A tensor to cut and the sizes of its chunks.
struct Cut {
  size_t leaf;
  std::vector<int64_t> sizes_rows;
};

bool has_rows(const at::Tensor& tensor) {
  return tensor.defined() && tensor.dim() > 0;
}

void check_chunks(
    const Cut& first,
    const Cut& cut,
    const std::vector<at::Tensor>& tensors,
    const std::vector<std::string>& paths,
    int64_t dim) {
  if (cut.sizes_rows.size() != first.sizes_rows.size()) {
    throw ShapeError(fmt::format(
        "DataParallel: argument {}: expected as many chunks as argument {} "
        "with {} rows ({}), got {} rows ({} chunks) in dimension {}. Tensors "
        "without a batch dimension must be 0-dim, or part of the module",
        paths[cut.leaf],
        paths[first.leaf],
        tensors[first.leaf].size(dim),
        first.sizes_rows.size(),
        tensors[cut.leaf].size(dim),
        cut.sizes_rows.size(),
        dim));
  }
}

std::vector<Cut> plan_cuts(
    const std::vector<at::Tensor>& tensors,
    const std::vector<std::string>& paths,
    size_t num_devices,
    int64_t dim) {
  std::vector<Cut> cuts;
  for (size_t leaf = 0; leaf < tensors.size(); ++leaf) {
    if (!has_rows(tensors[leaf])) {
      continue;
    }
    if (tensors[leaf].dim() <= dim) {
      throw ShapeError(fmt::format(
          "DataParallel: argument {}: expected at least {} dimensions, the "
          "batch dimension being {}, got {}",
          paths[leaf],
          dim + 1,
          dim,
          tensors[leaf].dim()));
    }
    cuts.push_back({leaf, plan_chunks(tensors[leaf].size(dim), num_devices)});
    check_chunks(cuts.front(), cuts.back(), tensors, paths, dim);
  }
  return cuts;
}

/// A copy even on the same device: replicas run at the same time, and what one
/// does to its rows in place must not move the version counter of others'.
at::Tensor copy_to(const at::Tensor& tensor, at::Device device) {
  return tensor
      .to(device, tensor.scalar_type(), /*non_blocking=*/true, /*copy=*/true);
}

} // namespace

std::vector<int64_t> plan_chunks(int64_t rows, size_t num_devices) {
  if (rows == 0) {
    return {0};
  }
  const auto num = static_cast<int64_t>(num_devices);
  const int64_t chunk_rows = (rows + num - 1) / num;
  std::vector<int64_t> sizes;
  for (int64_t row = 0; row < rows; row += chunk_rows) {
    sizes.push_back(std::min(chunk_rows, rows - row));
  }
  return sizes;
}

ScatteredInputs scatter(
    const ForwardCall& call,
    const std::vector<at::Device>& devices,
    int64_t dim,
    TransferCounts& counts) {
  TensorCollector inputs;
  StructureReader structure;
  call.visit_inputs(inputs);
  call.visit_inputs(structure);
  const auto cuts =
      plan_cuts(inputs.tensors, structure.tensor_paths, devices.size(), dim);
  const size_t num_chunks = cuts.empty() ? 1 : cuts.front().sizes_rows.size();

  ScatteredInputs chunks(
      num_chunks,
      std::vector<at::Tensor>(inputs.tensors.size()));
  const auto place = [&](size_t leaf, const std::vector<at::Tensor>& parts) {
    for (size_t chunk = 0; chunk < num_chunks; ++chunk) {
      chunks[chunk][leaf] = copy_to(parts[chunk], devices[chunk]);
      if (chunk > 0) {
        counts.add(chunks[chunk][leaf]);
      }
    }
  };
  auto cut = cuts.begin();
  for (size_t leaf = 0; leaf < inputs.tensors.size(); ++leaf) {
    const auto& tensor = inputs.tensors[leaf];
    if (has_rows(tensor)) {
      place(leaf, tensor.split_with_sizes((cut++)->sizes_rows, dim));
    } else if (tensor.defined()) {
      // One node for all chunks: the engine adds their gradients in order.
      place(leaf, tensor.expand({static_cast<int64_t>(num_chunks)}).unbind(0));
    }
  }
  return chunks;
}

} // namespace tandem::detail
