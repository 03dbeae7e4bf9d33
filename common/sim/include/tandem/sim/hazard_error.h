#pragma once

#include <tandem/core/errors.h>

namespace tandem::sim {

/// Thrown with `Options::hazard_checks` for work that may run before other work
/// on the same memory has ended. The operator that throws has not run; its
/// tensors are as before.
class HazardError : public Error {
 public:
  using Error::Error;
};

} // namespace tandem::sim
