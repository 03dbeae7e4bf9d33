#pragma once

#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace tandem::comm {

/// The collectives that have been started and may not have completed. Keeps
/// none of them alive.
class WorksInFlight {
 public:
  void add(const c10::intrusive_ptr<c10d::Work>& work);
  bool any() const;

 private:
  std::vector<c10::weak_intrusive_ptr<c10d::Work>> works_;
};

} // namespace tandem::comm
