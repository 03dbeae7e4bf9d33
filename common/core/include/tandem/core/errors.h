#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

namespace tandem {

/// Base of every exception that Tandem throws. It derives from `c10::Error`, so
/// handlers written for LibTorch catch it too.
class Error : public c10::Error {
 public:
  explicit Error(std::string message);
};

/// The caller's mistake in options, environment or module; nothing has been
/// changed when it is thrown.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// The caller's mistake in the shape, dtype or device of a tensor; nothing has
/// been changed when it is thrown.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// Another rank failed, left, or disagrees.
class PeerError : public Error {
 public:
  using Error::Error;
};

/// Another rank did not answer in time.
class TimeoutError : public PeerError {
 public:
  using PeerError::PeerError;
};

/// One replica's failure inside `DataParallel`.
struct ReplicaFailure {
  /// Index into the wrapper's list of devices.
  int64_t replica;
  at::Device device;
  std::exception_ptr exception;
};

/// Thrown by `DataParallel` when replicas failed in forward; carries all of
/// them. `std::rethrow_if_nested` gives the first one's own exception.
class ReplicaError : public Error, public std::nested_exception {
 public:
  /// **Throws** nothing. `failures` is not empty. To be constructed inside the
  /// handler of the first failure, which becomes the nested exception.
  explicit ReplicaError(std::vector<ReplicaFailure> failures);

  const std::vector<ReplicaFailure>& failures() const {
    return failures_;
  }

 private:
  std::vector<ReplicaFailure> failures_;
};

/// Text of an exception without LibTorch's backtrace; "unknown exception" for
/// what does not derive from `std::exception`.
std::string message_of(const std::exception_ptr& exception);

} // namespace tandem
