#include "collective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem::comm {

namespace {

// Odd, with its bits well spread: 2^64 over the golden ratio.
constexpr uint64_t kHashFactor = 0x9e3779b97f4a7c15;
constexpr unsigned kHashShift = 29;

uint64_t join_hash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kHashFactor;
  return hash ^ (hash >> kHashShift);
}

const char* reduction_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMean:
      return "mean";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
  }
  return "";
}

} // namespace

const char* operation_name(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kBarrier:
      return "barrier";
  }
  return "";
}

Collective Collective::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  return {
      .operation = Operation::kAllReduce,
      .op = op,
      .device = tensor.device().type(),
      .dtype = tensor.scalar_type(),
      .sizes = c10::DimVector(tensor.sizes())};
}

Collective Collective::broadcast(const at::Tensor& tensor, int64_t root) {
  return {
      .operation = Operation::kBroadcast,
      .root = root,
      .device = tensor.device().type(),
      .dtype = tensor.scalar_type(),
      .sizes = c10::DimVector(tensor.sizes())};
}

Collective Collective::barrier() {
  return {};
}

std::string Collective::describe() const {
  std::string name = operation_name(operation);
  if (operation == Operation::kBarrier) {
    return name;
  }
  const auto tensor =
      fmt::format("{} [{}]", toString(dtype), fmt::join(sizes, ", "));
  return operation == Operation::kBroadcast
      ? fmt::format("{} of {} from rank {}", name, tensor, root)
      : fmt::format("{} ({}) of {}", name, reduction_name(op), tensor);
}

uint64_t Collective::hash_after(uint64_t before) const {
  auto hash = join_hash(before, static_cast<uint64_t>(operation));
  hash = join_hash(hash, static_cast<uint64_t>(op));
  hash = join_hash(hash, static_cast<uint64_t>(root));
  hash = join_hash(hash, static_cast<uint64_t>(dtype));
  for (const auto size : sizes) {
    hash = join_hash(hash, static_cast<uint64_t>(size));
  }
  return hash;
}

} // namespace tandem::comm
