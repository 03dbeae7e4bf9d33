#include "harness/flop_counter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string_view>

#include <ATen/record_function.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/profiler/util.h>

namespace tandem::bench {

namespace {

constexpr std::array<std::string_view, 5> kCounted{
    "aten::conv2d",
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm"};

std::atomic<int64_t>& flops_so_far() {
  static std::atomic<int64_t> flops{0};
  return flops;
}

/// Counted calls that this thread is in: one device's kernel may be another's
/// operator of the same name.
int64_t& counted_depth() {
  thread_local int64_t depth = 0;
  return depth;
}

/// Lives as long as the call that it was made for.
struct CountedCall final : at::ObserverContext {
  CountedCall() {
    ++counted_depth();
  }
  ~CountedCall() override {
    --counted_depth();
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;
};

std::unique_ptr<at::ObserverContext> count_call(
    const at::RecordFunction& call) {
  const std::string_view name = call.name();
  if (std::find(kCounted.begin(), kCounted.end(), name) == kCounted.end()) {
    return nullptr;
  }
  if (counted_depth() == 0) {
    flops_so_far() += static_cast<int64_t>(torch::profiler::impl::computeFlops(
        std::string(name),
        torch::profiler::impl::saveExtraArgs(call)));
  }
  return std::make_unique<CountedCall>();
}

} // namespace

int64_t count_flops(const std::function<void()>& function) {
  flops_so_far() = 0;
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(count_call)
                                .needsInputs(true)
                                .scopes({at::RecordScope::FUNCTION}));
  const auto stop = c10::make_scope_exit([&] { at::removeCallback(handle); });
  function();
  return flops_so_far();
}

} // namespace tandem::bench
