#include "flight_recorder.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace tandem::comm {

namespace {

int64_t micros_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

} // namespace

int64_t FlightRecorder::begin(const Collective& collective) {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_completed();
  hash_ = collective.hash_after(hash_);
  ++last_sequence_;
  auto& slot = slots_[static_cast<size_t>(last_sequence_) % kCapacity];
  slot.sequence = last_sequence_;
  slot.collective = collective;
  slot.what.clear();
  slot.state = FlightState::kStarted;
  slot.started_us = micros_now();
  slot.ended_us = 0;
  return last_sequence_;
}

void FlightRecorder::launched(
    int64_t sequence,
    const c10::intrusive_ptr<c10d::Work>& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_flight_.push_back(
      {c10::weak_intrusive_ptr<c10d::Work>(work), work.get(), sequence});
}

int64_t FlightRecorder::awaited(
    const c10d::Work& work,
    const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(
      in_flight_.begin(),
      in_flight_.end(),
      [&](const InFlight& candidate) { return candidate.address == &work; });
  if (found == in_flight_.end()) {
    return 0;
  }
  if (auto* slot = slot_of(found->sequence)) {
    slot->what = what;
  }
  return found->sequence;
}

void FlightRecorder::finished(int64_t sequence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  end(sequence, FlightState::kFinished);
  drop(sequence);
}

void FlightRecorder::failed(int64_t sequence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  end(sequence, FlightState::kFailed);
  drop(sequence);
}

at::DeviceType FlightRecorder::device_of(int64_t sequence) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto* slot = slot_of(sequence);
  return slot != nullptr ? slot->collective.device : at::kCPU;
}

int64_t FlightRecorder::last_sequence() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_sequence_;
}

bool FlightRecorder::any_in_flight() {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_completed();
  return !in_flight_.empty();
}

std::string FlightRecorder::position(int64_t sequence, const std::string& what)
    const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto* slot = slot_of(sequence);
  if (slot != nullptr) {
    return fmt::format(
        "{} (collective {}: {})",
        what,
        sequence,
        slot->collective.describe());
  }
  return fmt::format("{} (after collective {})", what, last_sequence_);
}

uint64_t FlightRecorder::hash() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return hash_;
}

std::vector<FlightEntry> FlightRecorder::entries() {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_completed();
  std::vector<FlightEntry> entries;
  const auto oldest = std::max<int64_t>(
      1,
      last_sequence_ - static_cast<int64_t>(kCapacity) + 1);
  for (auto sequence = oldest; sequence <= last_sequence_; ++sequence) {
    const auto& slot = *slot_of(sequence);
    entries.push_back(
        {.sequence = sequence,
         .operation = operation_name(slot.collective.operation),
         .call = slot.collective.describe(),
         .what = slot.what,
         .state = slot.state,
         .started_us = slot.started_us,
         .ended_us = slot.ended_us});
  }
  return entries;
}

/// Null once it was overwritten, and for 0.
const FlightRecorder::Slot* FlightRecorder::slot_of(int64_t sequence) const {
  const auto& slot = slots_[static_cast<size_t>(sequence) % kCapacity];
  return sequence > 0 && slot.sequence == sequence ? &slot : nullptr;
}

FlightRecorder::Slot* FlightRecorder::slot_of(int64_t sequence) {
  auto& slot = slots_[static_cast<size_t>(sequence) % kCapacity];
  return sequence > 0 && slot.sequence == sequence ? &slot : nullptr;
}

void FlightRecorder::end(int64_t sequence, FlightState state) {
  auto* slot = slot_of(sequence);
  if (slot != nullptr && slot->state == FlightState::kStarted) {
    slot->state = state;
    slot->ended_us = micros_now();
  }
}

void FlightRecorder::drop(int64_t sequence) {
  std::erase_if(in_flight_, [&](const InFlight& flying) {
    return flying.sequence == sequence;
  });
}

void FlightRecorder::drop_completed() {
  std::erase_if(in_flight_, [this](const InFlight& flying) {
    const auto work = flying.work.lock();
    if (work && !work->isCompleted()) {
      return false;
    }
    end(flying.sequence,
        work && work->exception() ? FlightState::kFailed
                                  : FlightState::kFinished);
    return true;
  });
}

} // namespace tandem::comm
