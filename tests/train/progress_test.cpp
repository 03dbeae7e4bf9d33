#include <tandem/train/progress.h>

#include <sstream>

#include "tandem_catch.h"

namespace {

using namespace std::chrono_literals;
using tandem::train::Progress;
using tandem::train::progress_text;
using tandem::train::ProgressOptions;
using tandem::train::ProgressState;

ProgressState halfway() {
  ProgressState state;
  state.step = 300;
  state.num_steps = 600;
  state.epoch = 2;
  state.num_samples = 19200;
  state.seconds = 6;
  state.loss = 0.41234;
  return state;
}

} // namespace

TEST_CASE("progress says step, loss, speed and time left", "[train]") {
  CHECK(
      progress_text(halfway()) ==
      "epoch 2  step 300/600  loss 0.4123  3200 samples/s  6 s left");
  ProgressState unknown;
  unknown.step = 3;
  CHECK(progress_text(unknown) == "epoch 1  step 3");
}

TEST_CASE("progress keeps to its interval and always finishes", "[train]") {
  std::chrono::steady_clock::time_point now{};
  std::ostringstream out;
  Progress progress(out, ProgressOptions().interval(5s).clock([&] {
    return now;
  }));
  now += 4s;
  progress.update(halfway());
  CHECK(out.str().empty());
  now += 1s;
  progress.update(halfway());
  CHECK(out.str() == progress_text(halfway()) + "\n");
  now += 4s;
  progress.update(halfway());
  progress.finish(halfway());
  CHECK(
      out.str() ==
      progress_text(halfway()) + "\n" + progress_text(halfway()) + "\n");
}

TEST_CASE("progress on a terminal draws over its own bar", "[train]") {
  std::ostringstream out;
  Progress progress(out, ProgressOptions().terminal(true).interval(0s));
  progress.update(halfway());
  CHECK(
      out.str() ==
      "\r[############............] " + progress_text(halfway()) + "\x1b[K");
  progress.finish(halfway());
  CHECK(out.str().back() == '\n');
}
