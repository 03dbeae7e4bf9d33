#include <tandem/train/progress.h>

#include <algorithm>
#include <ostream>

#include <fmt/format.h>
#include <unistd.h>

namespace tandem::train {

namespace {

constexpr int64_t kBarWidthChars = 24;

std::string bar(const ProgressState& state) {
  if (!state.num_steps || *state.num_steps < 1) {
    return "";
  }
  const int64_t filled = std::clamp<int64_t>(
      state.step * kBarWidthChars / *state.num_steps,
      0,
      kBarWidthChars);
  return fmt::format(
      "[{:#<{}}{:.<{}}] ",
      "",
      filled,
      "",
      kBarWidthChars - filled);
}

} // namespace

std::string progress_text(const ProgressState& state) {
  std::string text = fmt::format("epoch {}  step {}", state.epoch, state.step);
  if (state.num_steps) {
    text += fmt::format("/{}", *state.num_steps);
  }
  if (state.loss) {
    text += fmt::format("  loss {:.4f}", *state.loss);
  }
  if (state.seconds > 0) {
    text += fmt::format(
        "  {:.0f} samples/s",
        static_cast<double>(state.num_samples) / state.seconds);
  }
  if (state.num_steps && state.step > 0 && state.step < *state.num_steps) {
    const auto left = static_cast<double>(*state.num_steps - state.step);
    text += fmt::format(
        "  {:.0f} s left",
        state.seconds / static_cast<double>(state.step) * left);
  }
  return text;
}

ProgressOptions stderr_progress() {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  return ProgressOptions().terminal(terminal).interval(
      std::chrono::milliseconds(terminal ? 100 : 5000));
}

Progress::Progress(std::ostream& out, ProgressOptions options)
    : out_(out),
      options_(std::move(options)),
      last_report_(options_.clock()()) {}

void Progress::update(const ProgressState& state) {
  const auto now = options_.clock()();
  if (now - last_report_ >= options_.interval()) {
    last_report_ = now;
    report(state, false);
  }
}

void Progress::finish(const ProgressState& state) {
  report(state, true);
}

void Progress::report(const ProgressState& state, bool last) {
  if (options_.terminal()) {
    out_ << '\r' << bar(state) << progress_text(state) << "\x1b[K"
         << (last ? "\n" : "");
  } else {
    out_ << progress_text(state) << '\n';
  }
  out_.flush();
}

} // namespace tandem::train
