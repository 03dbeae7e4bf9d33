#include "gather.h"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/core/tree_visitors.h>

namespace tandem::detail {

namespace {

/// Where a message says an output sits.
std::string output_label(const std::string& path) {
  return path.empty() ? "output" : "output " + path;
}

std::string replica_tag(size_t replica, at::Device device) {
  return fmt::format("[dp replica {} on {}]", replica, device.str());
}

std::string entry_at(const std::vector<std::string>& entries, size_t index) {
  return index < entries.size() ? "'" + entries[index] + "'" : "nothing more";
}

void check_structure(
    const StructureReader& first,
    const StructureReader& other,
    const std::string& tag) {
  if (first.entries == other.entries) {
    return;
  }
  const size_t common = std::min(first.entries.size(), other.entries.size());
  size_t index = 0;
  while (index < common && first.entries[index] == other.entries[index]) {
    ++index;
  }
  throw ShapeError(fmt::format(
      "{} output: expected the structure of replica 0's, with {}, got {}. "
      "forward must return the same structure for every chunk of rows",
      tag,
      entry_at(first.entries, index),
      entry_at(other.entries, index)));
}

/// The output tensors of all chunks, one after the other.
class Gatherer {
 public:
  Gatherer(
      const std::vector<at::Device>& devices,
      at::Device output_device,
      int64_t dim,
      TransferCounts& counts)
      : devices_(devices),
        output_device_(output_device),
        dim_(dim),
        counts_(counts) {}

  at::Tensor join(const std::vector<at::Tensor>& parts, const std::string& path)
      const {
    check_parts(parts, path);
    if (!parts.front().defined()) {
      return {};
    }
    const bool are_scalars = parts.front().dim() == 0;
    std::vector<at::Tensor> moved;
    for (size_t chunk = 0; chunk < parts.size(); ++chunk) {
      moved.push_back(parts[chunk].to(output_device_, /*non_blocking=*/false));
      if (are_scalars) {
        moved.back() = moved.back().unsqueeze(0);
      }
      if (chunk > 0) {
        counts_.add(moved.back());
      }
    }
    return moved.size() == 1 ? moved.front()
                             : at::cat(moved, are_scalars ? 0 : dim_);
  }

 private:
  void check_parts(
      const std::vector<at::Tensor>& parts,
      const std::string& path) const {
    const auto& first = parts.front();
    if (first.defined() && first.dim() > 0 && first.dim() <= dim_) {
      throw ShapeError(fmt::format(
          "DataParallel: {}: expected at least {} dimensions, the batch "
          "dimension being {}, or none, got {}",
          output_label(path),
          dim_ + 1,
          dim_,
          first.dim()));
    }
    for (size_t chunk = 1; chunk < parts.size(); ++chunk) {
      if (shape_text(parts[chunk]) != shape_text(first)) {
        throw ShapeError(fmt::format(
            "{} {}: expected {} as on replica 0, sizes apart from dimension {} "
            "being equal, got {}",
            replica_tag(chunk, devices_[chunk]),
            output_label(path),
            shape_text(first),
            dim_,
            shape_text(parts[chunk])));
      }
    }
  }

  /// dtype and shape, with the batch dimension as "rows".
  std::string shape_text(const at::Tensor& tensor) const {
    if (!tensor.defined()) {
      return "an undefined tensor";
    }
    std::string text = c10::toString(tensor.scalar_type());
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      text += (dim == 0 ? " [" : ", ");
      text += dim == dim_ ? "rows" : std::to_string(tensor.size(dim));
    }
    return text + (tensor.dim() == 0 ? " 0-dim" : "]");
  }

  const std::vector<at::Device>& devices_;
  at::Device output_device_;
  int64_t dim_;
  TransferCounts& counts_;
};

} // namespace

bool gather(
    ForwardCall& call,
    size_t num_chunks,
    const std::vector<at::Device>& devices,
    at::Device output_device,
    int64_t dim,
    TransferCounts& counts) {
  std::vector<TensorCollector> outputs(num_chunks);
  std::vector<StructureReader> structures(num_chunks);
  const auto& first = structures.front();
  for (size_t chunk = 0; chunk < num_chunks; ++chunk) {
    call.visit_chunk_output(chunk, structures[chunk]);
    check_structure(
        first,
        structures[chunk],
        replica_tag(chunk, devices[chunk]));
    call.visit_chunk_output(chunk, outputs[chunk]);
  }
  const Gatherer gatherer(devices, output_device, dim, counts);
  bool has_scalars = false;
  std::vector<at::Tensor> joined;
  for (size_t leaf = 0; leaf < first.tensor_paths.size(); ++leaf) {
    std::vector<at::Tensor> parts;
    parts.reserve(outputs.size());
    for (const auto& output : outputs) {
      parts.push_back(output.tensors[leaf]);
    }
    const auto& part = parts.front();
    has_scalars = has_scalars || (part.defined() && part.dim() == 0);
    joined.push_back(gatherer.join(parts, first.tensor_paths[leaf]));
  }
  call.adopt_chunk_output(0);
  TensorReplacer replacer(joined);
  call.write_output(replacer);
  return has_scalars;
}

void move_output(ForwardCall& call, at::Device device) {
  TensorCollector output;
  call.visit_output(output);
  for (auto& tensor : output.tensors) {
    if (tensor.defined()) {
      tensor = tensor.to(device);
    }
  }
  TensorReplacer replacer(output.tensors);
  call.write_output(replacer);
}

} // namespace tandem::detail
