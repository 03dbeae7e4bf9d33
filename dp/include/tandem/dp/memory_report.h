#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace tandem {

/// What one replica of a `DataParallel` wrapper holds on its device. **Units**:
/// bytes. A field that cannot be known is absent, never 0.
struct ReplicaMemory {
  at::Device device{at::kCPU};

  int64_t parameters_bytes = 0;
  int64_t buffers_bytes = 0;
  /// Of the wrapped module, which is replica 0; others keep none.
  int64_t gradients_bytes = 0;
  /// Absent if no optimizer was given, or one that is not LibTorch's.
  std::optional<int64_t> optimizer_bytes;
  /// What the last forward left allocated on the device, apart from gathered
  /// outputs: what its graph keeps for backward. Absent before a forward, where
  /// the allocator keeps no statistics (CPU), and on a device of several
  /// replicas. What other threads allocate meanwhile counts too.
  std::optional<int64_t> activations_bytes;
  /// Outputs that the last forward gathered here. Absent before a forward.
  std::optional<int64_t> outputs_bytes;

  /// Of everything on the device, by its allocator's statistics; absent where
  /// it keeps none (CPU).
  std::optional<int64_t> current_bytes;
  std::optional<int64_t> peak_bytes;

  /// Sum of what is known, without `current_bytes` and `peak_bytes`.
  int64_t known_bytes() const;
};

/// What a `DataParallel` wrapper holds, and why its first device holds more.
struct MemoryReport {
  /// Replica 0, 1, ...
  std::vector<ReplicaMemory> replicas;
  /// An output device that is none of the replicas': it holds outputs only.
  std::optional<ReplicaMemory> output_device;
  /// What `mean_loss`, whose criterion runs in the replicas, would have spared
  /// the output device at the last forward, at least: the gathered outputs.
  /// Their gradients, and what the criterion keeps for other replicas' rows,
  /// come on top. Absent before a forward.
  std::optional<int64_t> mean_loss_saves_bytes;

  /// A table with a line for each replica, and the reasons in words.
  std::string text() const;
};

} // namespace tandem
