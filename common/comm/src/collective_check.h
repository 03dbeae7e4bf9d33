#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem::comm {

/// A collective that all ranks compare before it runs.
struct ComparedCall {
  c10::intrusive_ptr<c10d::Store> store;
  int64_t rank;
  int64_t size;
  int64_t sequence;
  /// As all ranks must call it.
  std::string call;
  std::chrono::milliseconds limit;
};

/// How the comparison ended: all is well if both are empty.
struct ComparisonOutcome {
  /// The ranks' calls, where they differ: "collective 3: expected X as on rank
  /// 0, got Y on rank 1".
  std::string difference;
  /// Why there was no comparison.
  std::string failure;
};

/// Waits for the calls of all ranks. **Collective**, through the store.
/// **Throws** `c10::DistNetworkError` if the store is lost.
ComparisonOutcome compare_calls(const ComparedCall& call);

} // namespace tandem::comm
