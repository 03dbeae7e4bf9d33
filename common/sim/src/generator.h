#pragma once

#include <mutex>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace tandem::sim {

/// A generator of device `index`: the CPU's algorithm under the device's name,
/// so that it gives the CPU's numbers for the same seed.
at::Generator make_generator(int8_t index);

/// The CPU generator inside, which kernels draw from.
/// **Throws** `ShapeError` if `generator` is not one of `make_generator`'s.
at::Generator cpu_generator(const at::Generator& generator);

/// For kernels that draw from the CPU's default generator without being told:
/// while it lives, that has the state of `generator`, which afterwards goes on
/// from where the kernel left it. No other thread may draw from the CPU's
/// default generator meanwhile; several of these wait for each other.
class [[nodiscard]] LendState {
 public:
  explicit LendState(at::Generator generator);
  ~LendState();
  LendState(const LendState&) = delete;
  LendState& operator=(const LendState&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  at::Generator generator_;
  at::Tensor saved_;
};

} // namespace tandem::sim
