#include "works_in_flight.h"

#include <algorithm>

namespace tandem::comm {

namespace {

bool has_completed(const c10::weak_intrusive_ptr<c10d::Work>& weak) {
  const auto work = weak.lock();
  return !work || work->isCompleted();
}

} // namespace

void WorksInFlight::add(const c10::intrusive_ptr<c10d::Work>& work) {
  std::erase_if(works_, has_completed);
  works_.emplace_back(work);
}

bool WorksInFlight::any() const {
  return !std::all_of(works_.begin(), works_.end(), has_completed);
}

} // namespace tandem::comm
