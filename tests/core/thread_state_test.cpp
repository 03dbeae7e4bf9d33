#include <exception>
#include <thread>

#include <ATen/autocast_mode.h>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/core/thread_state.h>

#include "tandem_catch.h"

namespace {

struct Observed {
  bool grad = true;
  bool inference = false;
  bool autocast = false;
  at::ScalarType autocast_dtype = at::kFloat;
};

Observed observe() {
  return {
      at::GradMode::is_enabled(),
      c10::InferenceMode::is_enabled(),
      at::autocast::is_autocast_enabled(at::kCPU),
      at::autocast::get_autocast_dtype(at::kCPU)};
}

Observed observe_in_thread(const tandem::ThreadState& state) {
  Observed observed;
  std::thread thread([&] {
    const tandem::ThreadStateGuard guard(state, 0);
    observed = observe();
  });
  thread.join();
  return observed;
}

} // namespace

TEST_CASE("thread state carries grad and inference mode", "[core][DP-28]") {
  {
    const torch::NoGradGuard no_grad;
    CHECK_FALSE(observe_in_thread(tandem::ThreadState({at::kCPU})).grad);
  }
  {
    const c10::InferenceMode inference;
    CHECK(observe_in_thread(tandem::ThreadState({at::kCPU})).inference);
  }
  const auto plain = observe_in_thread(tandem::ThreadState({at::kCPU}));
  CHECK(plain.grad);
  CHECK_FALSE(plain.inference);
}

TEST_CASE("thread state carries autocast and its dtype", "[core]") {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  const tandem::ThreadState state({at::kCPU});
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const auto observed = observe_in_thread(state);
  CHECK(observed.autocast);
  CHECK(observed.autocast_dtype == at::kHalf);
}

TEST_CASE("thread state guard restores what the thread had", "[core]") {
  std::optional<tandem::ThreadState> state;
  {
    const torch::NoGradGuard no_grad;
    state.emplace(std::vector<at::Device>{at::kCPU});
  }
  {
    const tandem::ThreadStateGuard guard(*state, 0);
    CHECK_FALSE(at::GradMode::is_enabled());
  }
  CHECK(at::GradMode::is_enabled());
}

TEST_CASE("replica error carries every failure and nests the first", "[core]") {
  const auto first =
      std::make_exception_ptr(std::out_of_range("first failure"));
  const auto second = std::make_exception_ptr(42);
  try {
    try {
      std::rethrow_exception(first);
    } catch (...) {
      throw tandem::ReplicaError(
          {{1, at::Device(at::kCPU), first},
           {3, at::Device(at::kMeta), second}});
    }
  } catch (const c10::Error& error) {
    const std::string text = error.what();
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("replica 1 on cpu"));
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("first failure"));
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("replica 3 on meta"));
    const auto* replica_error =
        dynamic_cast<const tandem::ReplicaError*>(&error);
    REQUIRE(replica_error != nullptr);
    CHECK(replica_error->failures().size() == 2);
    CHECK_THROWS_AS(replica_error->rethrow_nested(), std::out_of_range);
  }
}

TEST_CASE("errors derive from LibTorch's", "[core]") {
  CHECK_THROWS_AS(throw tandem::ShapeError("x"), c10::Error);
  CHECK_THROWS_AS(throw tandem::TimeoutError("x"), tandem::PeerError);
  CHECK_THROWS_AS(throw tandem::ConfigError("x"), tandem::Error);
  CHECK(
      tandem::message_of(std::make_exception_ptr(tandem::ConfigError("say"))) ==
      "say");
}
