#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include <torch/arg.h>

namespace tandem::train {

/// How far a training is.
struct ProgressState {
  int64_t step = 0;
  /// Steps planned, if known.
  std::optional<int64_t> num_steps;
  /// Epoch that runs, from 1.
  int64_t epoch = 1;
  /// Rows of all ranks so far.
  int64_t num_samples = 0;
  double seconds = 0;
  /// Last recorded loss.
  std::optional<double> loss;
};

/// "epoch 1  step 300/938  loss 0.4123  2911 samples/s  7 s left".
std::string progress_text(const ProgressState& state);

struct ProgressOptions {
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// On: a bar that is redrawn in place; off: plain lines.
  TORCH_ARG(bool, terminal) = false;
  /// Shortest time between two updates.
  TORCH_ARG(std::chrono::milliseconds, interval) = std::chrono::seconds(5);
  TORCH_ARG(Clock, clock) = &std::chrono::steady_clock::now;
};

/// The options for this process's stderr: a bar ten times a second if it is a
/// terminal, else a line every five seconds.
ProgressOptions stderr_progress();

/// Reports progress on a stream, no more often than asked for.
class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options);

  void update(const ProgressState& state);
  /// Reports the last state, whenever the one before was reported.
  void finish(const ProgressState& state);

 private:
  void report(const ProgressState& state, bool last);

  std::ostream& out_;
  ProgressOptions options_;
  std::chrono::steady_clock::time_point last_report_;
};

} // namespace tandem::train
