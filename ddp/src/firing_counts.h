#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::detail {

/// How often each parameter's gradient comes in one backward of a static graph.
/// The first reduction shows it; all others must do the same.
class FiringCounts {
 public:
  explicit FiringCounts(size_t num_parameters);

  bool is_learning() const {
    return is_learning_;
  }
  /// One more gradient for the parameter.
  void arrived(size_t index) {
    ++seen_[index];
  }
  int64_t seen(size_t index) const {
    return seen_[index];
  }
  /// Of the first reduction; 0 while that lasts.
  int64_t expected(size_t index) const {
    return expected_[index];
  }
  /// Ends a reduction; what was seen in the first one is what is expected.
  void reduction_ended(bool is_whole);

 private:
  bool is_learning_ = true;
  std::vector<int64_t> seen_;
  std::vector<int64_t> expected_;
};

} // namespace tandem::detail
