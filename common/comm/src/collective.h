#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/util/DimVector.h>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

enum class Operation : uint8_t { kAllReduce, kBroadcast, kBarrier };

/// "all-reduce"
const char* operation_name(Operation operation);

/// A collective as a rank calls it: what must be the same on all ranks.
struct Collective {
  Operation operation = Operation::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int64_t root = 0;
  at::DeviceType device = at::kCPU;
  at::ScalarType dtype = at::kByte;
  c10::DimVector sizes;

  static Collective all_reduce(const at::Tensor& tensor, ReduceOp op);
  static Collective broadcast(const at::Tensor& tensor, int64_t root);
  static Collective barrier();

  /// "all-reduce (sum) of float [1000]"
  std::string describe() const;
  /// Joined to that of the collectives before.
  uint64_t hash_after(uint64_t before) const;
};

} // namespace tandem::comm
