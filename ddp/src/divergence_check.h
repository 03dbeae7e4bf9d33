#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// Note [Divergence]
/// Ranks that hold different values train different models, and nothing fails.
/// So every so many steps the ranks compare a checksum of all parameters' bits,
/// and a hash of the collectives that each has started: 32 bytes in one
/// all-reduce, the largest of each number and of its complement. Only where
/// these show a difference are the checksums of each parameter exchanged.
///
/// **Threads**: as the group.
class DivergenceCheck {
 public:
  /// Compares every `every`-th step; 0: never.
  DivergenceCheck(
      std::shared_ptr<comm::ProcessGroup> group,
      std::vector<NamedTensor> parameters,
      int64_t every);

  /// To be called once per step, where all ranks' parameters should be equal
  /// and none of the group's collectives is in flight.
  /// **Collective**. The group is of use after an error, too.
  /// **Throws** `PeerError` on every rank, naming the first parameter that
  /// differs, and the ranks.
  void step();

  const Counters& counters() const {
    return counters_;
  }

 private:
  void compare();
  [[noreturn]] void throw_difference(
      const at::Tensor& checksums,
      uint64_t collectives_hash);

  std::shared_ptr<comm::ProcessGroup> group_;
  std::vector<NamedTensor> parameters_;
  int64_t every_;
  int64_t num_steps_ = 0;
  Counters counters_;
};

} // namespace tandem::detail
