#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tandem/ddp/logging_data.h>

namespace tandem::detail {

/// Keeps the times of forward, backward and reduction.
class ReductionLog {
 public:
  void forward_began();
  void forward_ended();
  /// One of the backwards of a reduction.
  void backward_began();
  void gradient_came();
  void bucket_launched(size_t index);
  /// Backward is through; what follows is waiting.
  void compute_ended();
  /// Waiting is over for this backward.
  void backward_ended();
  /// No bucket is left.
  void reduction_ended(size_t num_buckets);
  /// The reduction failed: nothing of it counts.
  void restart();

  int64_t num_reductions() const {
    return num_reductions_;
  }
  /// The times and the number of reductions.
  void write_to(DDPLoggingData& data) const;

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  struct Times {
    Seconds forward{};
    Seconds compute{};
    Seconds communication{};
    Seconds overlap{};
  };

  Seconds since_begin(Clock::time_point time) const;

  Clock::time_point forward_begin_;
  Seconds forward_{};

  /// Of the reduction that goes on.
  bool is_running_ = false;
  Clock::time_point begin_;
  Clock::time_point backward_begin_;
  Clock::time_point last_gradient_;
  Clock::time_point compute_end_;
  std::vector<Clock::time_point> launches_;
  Seconds compute_{};
  Seconds waiting_{};

  int64_t num_reductions_ = 0;
  Times last_;
  Times total_;
  std::vector<double> last_launches_;
  double last_gradient_time_ = 0;
};

} // namespace tandem::detail
