#include "sparse_reduction.h"

#include <cstdint>
#include <vector>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace tandem::detail {

namespace {

/// Rows of `grad` as a table: the places, and what stands there.
struct SparseRows {
  at::Tensor indices; // [1, rows]
  at::Tensor values; // [rows, ...]
};

SparseRows rows_of(const at::Tensor& parameter, const at::Tensor& grad) {
  if (!grad.defined()) {
    auto sizes = parameter.sizes().vec();
    sizes.front() = 0;
    return {
        at::empty({1, 0}, parameter.options().dtype(at::kLong)),
        at::empty(sizes, parameter.options())};
  }
  const auto unique = grad.coalesce();
  return {unique.indices().contiguous(), unique.values().contiguous()};
}

} // namespace

at::Tensor sum_sparse(
    comm::ProcessGroup& group,
    const NamedTensor& parameter,
    const at::Tensor& grad,
    Counters& counters) {
  const auto own = rows_of(parameter.tensor, grad);
  auto counts = at::zeros({group.size()}, at::kLong);
  counts[group.rank()] = own.values.size(0);
  group.all_reduce(counts);
  ++counters.collectives;
  counters.bytes_moved += static_cast<int64_t>(counts.nbytes());

  std::vector<at::Tensor> indices;
  std::vector<at::Tensor> values;
  for (int64_t root = 0; root < group.size(); ++root) {
    const auto rows = counts[root].item<int64_t>();
    if (rows == 0) {
      continue;
    }
    auto sizes = own.values.sizes().vec();
    sizes.front() = rows;
    const bool is_own = root == group.rank();
    indices.push_back(
        is_own ? own.indices : at::empty({1, rows}, own.indices.options()));
    values.push_back(
        is_own ? own.values : at::empty(sizes, own.values.options()));
    const auto what = fmt::format(
        "broadcast of sparse gradient '{}' from rank {}",
        parameter.name,
        root);
    const auto sending = group.broadcast_async(indices.back(), root);
    group.confirm(group.broadcast_async(values.back(), root), what);
    group.confirm(sending, what);
    counters.collectives += 2;
    counters.bytes_moved +=
        static_cast<int64_t>(indices.back().nbytes() + values.back().nbytes());
  }
  if (indices.empty()) {
    indices.push_back(own.indices);
    values.push_back(own.values);
  }
  return at::sparse_coo_tensor(
             at::cat(indices, 1),
             at::cat(values, 0),
             parameter.tensor.sizes(),
             parameter.tensor.options().layout(at::kSparse))
      .coalesce();
}

} // namespace tandem::detail
