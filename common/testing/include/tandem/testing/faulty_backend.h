#pragma once

#include <cstdint>

#include <tandem/comm/backend.h>

namespace tandem::testing {

/// A way for a transport to be wrong without an error.
struct Fault {
  enum class Kind {
    /// Every all-reduce gives the world size times the right result, as if the
    /// division had been forgotten.
    kForgetsDivision,
    /// One all-reduce says that it is done and has done nothing.
    kDropsAllReduce,
  };

  Kind kind = Kind::kForgetsDivision;
  /// Which all-reduce is dropped, counted from 0 in each group.
  int64_t dropped_index = 0;
};

/// `real` with a fault, named "faulty": the negative control that shows that a
/// check can fail.
///
/// Example:
/// ```cpp
/// const tandem::comm::ScopedBackend scope(
///     at::kCPU,
///     tandem::testing::faulty_backend(
///         tandem::comm::backend_factory(at::kCPU),
///         {tandem::testing::Fault::Kind::kForgetsDivision}));
/// ```
comm::BackendFactory faulty_backend(
    const comm::BackendFactory& real,
    Fault fault);

} // namespace tandem::testing
