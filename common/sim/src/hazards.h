#pragma once

#include <map>
#include <memory>
#include <mutex>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "stream_clocks.h"
#include "use_log.h"

namespace tandem::sim {

/// A use of a block that is to be checked.
struct BlockUse {
  UseLog* log;
  ByteRange bytes;
  UseKind kind;
};

using BlockUses = c10::SmallVector<BlockUse, 8>;

/// Finds uses of memory that no event orders: see Note [Hazards].
/// **Threads**: any.
class Hazards {
 public:
  /// A work of `operator_name` on `stream`. **Throws** `HazardError` if one of
  /// `uses` may run before what it must come after; nothing is recorded then.
  void add_work(
      const c10::Stream& stream,
      const std::string& operator_name,
      const BlockUses& uses);

  /// Memory that the last work of `stream` has allocated and written.
  void add_results(
      const c10::Stream& stream,
      const std::string& operator_name,
      const BlockUses& uses);

  /// Makes `event` what comes before the next work of `stream`.
  void record(const c10::Stream& stream, VectorClock& event);
  void wait(const c10::Stream& stream, const VectorClock& event);
  void wait_for(const c10::Stream& stream, const c10::Stream& other);
  /// Host waits; those on a device are for all its streams.
  void host_wait(const VectorClock& event);
  void host_wait_for(const c10::Stream& stream);
  void host_wait_for_device(c10::DeviceIndex device);

  /// The log of a new block. **Throws** `HazardError` if the block may be one
  /// that was freed while another stream used it.
  std::unique_ptr<UseLog> allocate(const c10::Stream& stream, size_t num_bytes);
  void free(std::unique_ptr<UseLog> log);
  void record_stream(UseLog& log, const c10::Stream& stream);

 private:
  void check(
      size_t stream,
      const std::string& operator_name,
      const BlockUse& use);

  std::mutex mutex_;
  StreamClocks clocks_;
  /// Last uses, by user, of blocks that went back to a stream's memory.
  std::map<size_t, std::map<size_t, Use>> freed_in_use_;
};

/// The use of a strided tensor's bytes, or of a whole storage; added to `uses`
/// if they lie in a block that has a log.
void append_use(BlockUses& uses, const at::Tensor& tensor, UseKind kind);
void append_use(BlockUses& uses, const c10::Storage& storage, UseKind kind);

} // namespace tandem::sim
