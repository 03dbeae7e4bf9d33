#include "hazards.h"

#include <fmt/format.h>

#include <tandem/sim/hazard_error.h>

#include "block.h"

namespace tandem::sim {

// Note [Hazards]
// ~~~~~~~~~~~~~~
// Kernels run when they are called, in the order of the program, so that a
// missing wait changes no result here. To find it all the same, the order that
// a GPU would keep is followed beside the execution: works on one stream come
// one after another; an event comes after the work before it, and work after a
// wait for the event comes after the event; what the host has waited for comes
// before all that it starts later. Vector clocks tell for two works whether one
// comes after the other.
//
// Every block of memory knows the works that used it last, by ranges of bytes.
// A read must come after writes, a write after reads and writes. A block that
// is freed goes back to the stream on which it was allocated, whose next
// allocation may get it: this must come after uses by other streams, unless
// they were announced by record_stream.
//
// The host is one: what a thread has waited for counts for all threads, since
// how threads wait for each other is not seen.

namespace {

UseLog* log_of(const c10::Storage& storage) {
  return use_log_of(
      storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks());
}

std::string verb(UseKind kind) {
  return kind == UseKind::kRead ? "reads" : "writes";
}

} // namespace

void Hazards::check(
    size_t stream,
    const std::string& operator_name,
    const BlockUse& use) {
  const auto* const earlier =
      use.log->find_unordered(use.bytes, use.kind, clocks_.next_work(stream));
  if (earlier == nullptr) {
    return;
  }
  const auto name = clocks_.name_of(stream);
  throw HazardError(fmt::format(
      "{} on {}: expected to come after {} on {}, which {} memory that it {}, "
      "got no event that orders them. Record an event on {} after {}, and let "
      "{} wait for it",
      operator_name,
      name,
      earlier->operator_name,
      clocks_.name_of(earlier->stream),
      verb(earlier->kind),
      verb(use.kind),
      clocks_.name_of(earlier->stream),
      earlier->operator_name,
      name));
}

void Hazards::add_work(
    const c10::Stream& stream,
    const std::string& operator_name,
    const BlockUses& uses) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto index = clocks_.index_of(stream);
  for (const auto& use : uses) {
    check(index, operator_name, use);
  }
  const auto time = clocks_.add_work(index);
  for (const auto& use : uses) {
    use.log->add(
        {use.bytes, use.kind, index, time, operator_name},
        clocks_.next_work(index));
  }
}

void Hazards::add_results(
    const c10::Stream& stream,
    const std::string& operator_name,
    const BlockUses& uses) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto index = clocks_.index_of(stream);
  const auto& clock = clocks_.next_work(index);
  for (const auto& use : uses) {
    use.log->add(
        {use.bytes, use.kind, index, clock.at(index), operator_name},
        clock);
  }
}

void Hazards::record(const c10::Stream& stream, VectorClock& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  event = clocks_.next_work(clocks_.index_of(stream));
}

void Hazards::wait(const c10::Stream& stream, const VectorClock& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clocks_.wait(clocks_.index_of(stream), event);
}

void Hazards::wait_for(const c10::Stream& stream, const c10::Stream& other) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto& clock = clocks_.next_work(clocks_.index_of(other));
  clocks_.wait(clocks_.index_of(stream), clock);
}

void Hazards::host_wait(const VectorClock& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clocks_.host_wait(event);
}

void Hazards::host_wait_for(const c10::Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clocks_.host_wait(clocks_.next_work(clocks_.index_of(stream)));
}

void Hazards::host_wait_for_device(c10::DeviceIndex device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clocks_.host_wait_for_device(device);
}

std::unique_ptr<UseLog> Hazards::allocate(
    const c10::Stream& stream,
    size_t num_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto index = clocks_.index_of(stream);
  const auto& clock = clocks_.next_work(index);
  auto& pending = freed_in_use_[index];
  std::erase_if(pending, [&](const auto& entry) {
    return clock.at(entry.first) >= entry.second.time;
  });
  if (pending.empty()) {
    return std::make_unique<UseLog>(index);
  }
  const auto& [user, use] = *pending.begin();
  const auto name = clocks_.name_of(index);
  throw HazardError(fmt::format(
      "allocation of {} bytes on {}: expected memory that no other stream "
      "uses, got memory that was freed while {} on {} {} it. Call "
      "record_stream before the tensor goes, or let {} wait for an event that "
      "comes after {}",
      num_bytes,
      name,
      use.operator_name,
      clocks_.name_of(user),
      verb(use.kind),
      name,
      use.operator_name));
}

void Hazards::free(std::unique_ptr<UseLog> log) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& use : log->foreign_uses()) {
    auto& pending = freed_in_use_[log->stream()];
    const auto [last, is_new] = pending.emplace(use.stream, use);
    if (!is_new && last->second.time < use.time) {
      last->second = std::move(use);
    }
  }
}

void Hazards::record_stream(UseLog& log, const c10::Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  log.record_stream(clocks_.index_of(stream));
}

void append_use(BlockUses& uses, const at::Tensor& tensor, UseKind kind) {
  if (!tensor.is_privateuseone() || !tensor.has_storage() ||
      tensor.numel() == 0) {
    return;
  }
  auto* const log = log_of(tensor.storage());
  if (log == nullptr) {
    return;
  }
  int64_t span = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    span += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  const auto item_bytes = static_cast<int64_t>(tensor.itemsize());
  const auto begin = tensor.storage_offset() * item_bytes;
  uses.push_back({log, {begin, begin + span * item_bytes}, kind});
}

void append_use(BlockUses& uses, const c10::Storage& storage, UseKind kind) {
  if (auto* const log = log_of(storage)) {
    uses.push_back({log, {0, static_cast<int64_t>(storage.nbytes())}, kind});
  }
}

} // namespace tandem::sim
