#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <tandem/comm/diagnostics.h>

namespace c10d {
class ProcessGroup;
class Store;
class Work;
} // namespace c10d

namespace tandem::comm {

/// Limit of each collective unless chosen otherwise.
inline constexpr std::chrono::milliseconds kDefaultTimeout =
    std::chrono::seconds(60);
/// Limit for all ranks to meet, likewise.
inline constexpr std::chrono::milliseconds kDefaultStartupTimeout =
    std::chrono::seconds(120);

/// How an all-reduce combines the ranks' values. `kMean` is the sum divided by
/// the world size and needs a floating or complex dtype; Gloo divides after the
/// sum, NCCL as `ncclAvg` does. Complex values are reduced as pairs of reals
/// and can be neither compared (`kMin`, `kMax`) nor multiplied (`kProduct`).
enum class ReduceOp { kSum, kMean, kMin, kMax, kProduct };

/// A set of ranks and the backends they talk through: Gloo for CPU tensors,
/// NCCL for CUDA tensors where CUDA was chosen, or what was registered for the
/// device. Tensors choose the backend by their device.
///
/// After a collective has failed the group is of no more use: what is in flight
/// is aborted and every later collective throws.
///
/// **Owns** its backends and a reference to its store. The destructor never
/// waits for peers: collectives that are still in flight are aborted.
/// **Threads**: calls of one rank must come in one order; at most one thread at
/// a time.
class ProcessGroup {
 public:
  /// Wraps a group that is already connected. `device` is where this rank's
  /// models and inputs live; `diagnostics` absent: as the environment says.
  ProcessGroup(
      c10::intrusive_ptr<c10d::ProcessGroup> group,
      c10::intrusive_ptr<c10d::Store> store,
      at::Device device,
      std::chrono::milliseconds timeout,
      std::chrono::milliseconds startup_timeout = kDefaultStartupTimeout,
      const std::optional<Diagnostics>& diagnostics = std::nullopt);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const;
  /// World size.
  int64_t size() const;
  /// Where this rank's model lives: the CPU, or CUDA device LOCAL_RANK.
  at::Device device() const;
  /// Limit of each collective.
  std::chrono::milliseconds timeout() const;
  /// Limit for all ranks to meet at start-up and to answer in agreements.
  std::chrono::milliseconds startup_timeout() const;
  const Diagnostics& diagnostics() const;
  /// "gloo", "nccl" or the registered name of the backend for `device_type`.
  std::string backend_name(at::DeviceType device_type) const;

  /// Starts an all-reduce of `tensor`, in place. The tensor must not be
  /// touched until `wait` has returned for it; then, for CUDA, it is ready on
  /// the caller's current stream.
  /// **Collective**.
  /// **Throws** `ShapeError` if the tensor is not contiguous, has a dtype that
  /// `op` cannot combine, or lies on a device without a backend.
  c10::intrusive_ptr<c10d::Work> all_reduce_async(
      const at::Tensor& tensor,
      ReduceOp op = ReduceOp::kSum);
  /// Likewise, `root`'s values to all ranks.
  c10::intrusive_ptr<c10d::Work> broadcast_async(
      const at::Tensor& tensor,
      int64_t root = 0);
  /// Waits for one collective; `what` names it in the error. For CUDA it only
  /// makes the current stream wait: see `confirm`. A null `work` is done.
  /// **Throws** `TimeoutError` or `PeerError`, naming the ranks that a roll
  /// call missed.
  void wait(
      const c10::intrusive_ptr<c10d::Work>& work,
      const std::string& what);
  /// As `wait`, but blocks until the result is really there, on CUDA too. Until
  /// then a failed NCCL collective leaves garbage behind without an error.
  void confirm(
      const c10::intrusive_ptr<c10d::Work>& work,
      const std::string& what);

  /// The blocking forms, which take tensors that are not contiguous too.
  /// **Collective**. **Throws** as the asynchronous ones and `confirm`.
  void all_reduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);
  void broadcast(at::Tensor& tensor, int64_t root = 0);
  /// Returns when every rank has called it; does not wait for devices.
  void barrier();

  /// The store that the ranks share, under this group's own key prefix.
  const c10::intrusive_ptr<c10d::Store>& store() const;
  /// The c10d group beneath, for peers such as `c10d::Reducer`.
  const c10::intrusive_ptr<c10d::ProcessGroup>& c10d_group() const;
  /// A number that is the same on every rank and different at each call, for
  /// keys in the store. **Collective** in order, but sends nothing.
  int64_t next_sequence();
  /// How many collectives this rank has started so far. Ranks that are at the
  /// same point of the program differ if one has left some out.
  int64_t num_collectives() const;
  /// A hash of all collectives that this rank has started so far (operation,
  /// dtype, sizes, root), in their order: the same on every rank, or they have
  /// started different ones.
  uint64_t collectives_hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace tandem::comm
