#pragma once

#include <chrono>
#include <cstdint>

#include <c10/core/Device.h>

namespace tandem::sim {

inline constexpr int64_t kMaxDevices = 64;

/// The accelerator that `init` makes.
struct Options {
  /// Number of devices: 1 to `kMaxDevices`.
  int64_t devices = 1;
  /// Memory of each device; 0 sets no limit. What does not fit is a
  /// `c10::OutOfMemoryError`, as on CUDA.
  int64_t capacity_bytes = 0;
  /// A copy from one device to another takes at least `link_latency` plus its
  /// bytes over `link_bytes_per_s` (0: as fast as the host copies). For seeing
  /// what transfers cost; slows the program down.
  std::chrono::nanoseconds link_latency{0};
  double link_bytes_per_s = 0;
  /// Work that uses memory before other work on it has ended, because no event,
  /// wait or `record_stream` orders the two, is a `HazardError`. Finds what
  /// would be a race of streams on CUDA, and adds some tenths of a microsecond
  /// to an operator. Not seen are host memory that a copy fills with
  /// `non_blocking`, races of host threads, and what works on `data_ptr()`.
  bool hazard_checks = false;

  bool operator==(const Options&) const = default;
};

/// Registers the simulated accelerator with LibTorch under the device type
/// "sim": devices in host memory whose kernels are the CPU's, so that results
/// equal the CPU's bit for bit at the same number of threads. Streams and
/// events exist, but execution is synchronous: work is done when a call
/// returns.
///
/// Each device has its own memory, random generator and autograd thread.
/// Dispatch, autograd, autocast, `Module::to`, save and load treat it as an
/// accelerator like CUDA. Until this call nothing is registered; afterwards it
/// is for the life of the process, and a child made by `fork` cannot run
/// backward. A second call with the same options does nothing.
///
/// **Threads**: no other thread may use LibTorch meanwhile. The autograd
/// engine's threads are started here.
/// **Throws** `ConfigError` for options out of range or different from the
/// first call's; if CUDA is in use in this process, or another extension's
/// device; if a backward ran before, since the engine has then made its threads
/// for good. Nothing has been registered then.
void init(const Options& options);

bool is_initialized();

/// Number of devices; 0 before `init`.
int64_t device_count();

/// "sim:`index`". **Throws** `ConfigError` before `init`, or if there is no
/// such device.
at::Device device(int64_t index);

} // namespace tandem::sim
