// When and in which order the replicas' gradients are added.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// Events in the order in which they came, from any thread.
class EventLog {
 public:
  void add(const std::string& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }

  /// Whether `event` comes within the deadline.
  bool wait_for(const std::string& event) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return has(event);
    });
  }

  /// Whether `first` came before `second`, and both came.
  bool is_before(const std::string& first, const std::string& second) {
    const std::lock_guard lock(mutex_);
    return has(second) &&
        std::find(events_.begin(), events_.end(), first) <
        std::find(events_.begin(), events_.end(), second);
  }

 private:
  bool has(const std::string& event) const {
    return std::find(events_.begin(), events_.end(), event) != events_.end();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

/// Two layers; backward calls `between` on its way from the last to the first,
/// with the chunk's number of rows.
struct TwoLayersImpl : torch::nn::Cloneable<TwoLayersImpl> {
  TwoLayersImpl() {
    reset();
  }
  void reset() override {
    first = register_module("first", torch::nn::Linear(3, 4));
    last = register_module("last", torch::nn::Linear(4, 2));
  }
  at::Tensor forward(const at::Tensor& input) {
    const auto hidden = first(input).tanh();
    hidden.register_hook(
        [call = between, rows = input.size(0)](const at::Tensor& gradient) {
          call(rows);
          return gradient;
        });
    return last(hidden);
  }
  std::function<void(int64_t)> between;
  torch::nn::Linear first{nullptr};
  torch::nn::Linear last{nullptr};
};

constexpr auto kSumOfLast = "sum of the last layer";
constexpr auto kSumOfFirst = "sum of the first layer";
constexpr auto kReplica1AtFirst = "replica 1 comes to the first layer";

void log_gradient(
    EventLog& log,
    const at::Tensor& parameter,
    const char* what) {
  parameter.register_hook([&log, what](const at::Tensor& gradient) {
    log.add(what);
    return gradient;
  });
}

} // namespace

TEST_CASE("a bucket is summed before backward of earlier layers ends", "[dp]") {
  EventLog log;
  const auto net = make_base<TwoLayersImpl>(1);
  // Of 5 rows replica 0 has 3. The CPU's one thread cannot wait for itself; it
  // comes to replica 1 after replica 0.
  net->between = [&log](int64_t rows) {
    if (rows == 2) {
      if (!device().is_cpu()) {
        log.wait_for(kSumOfLast);
      }
      log.add(kReplica1AtFirst);
    }
  };
  log_gradient(log, net->last->weight, kSumOfLast);
  log_gradient(log, net->first->weight, kSumOfFirst);
  tandem::DataParallel model(net, on_devices(2).bucket_cap_bytes(1));
  model(normal({5, 3}, 1)).sum().backward();
  CHECK(log.is_before(kSumOfLast, kReplica1AtFirst));
  CHECK(log.is_before(kReplica1AtFirst, kSumOfFirst));
}

TEST_CASE("gradients are added in replica order, bit for bit", "[dp]") {
  for (const size_t count : {2, 3, 4, 5}) {
    INFO(count << " devices");
    const auto net = make_base<ConvLinearImpl>(1);
    net->to(at::kFloat);
    const auto rows = static_cast<int64_t>(3 * count);
    const auto input = ConvLinearImpl::input(rows, 3).to(device(), at::kFloat);
    const auto grads_for = [&](const at::Tensor& output) {
      return torch::autograd::grad({output.sin().sum()}, net->parameters());
    };
    auto expected = grads_for(net->forward(input.narrow(0, 3, 3)));
    const auto add = [&](const at::Tensor& chunk) {
      const auto grads = grads_for(net->forward(chunk));
      for (size_t index = 0; index < grads.size(); ++index) {
        expected[index] = expected[index] + grads[index];
      }
    };
    for (size_t replica = 2; replica < count; ++replica) {
      add(input.narrow(0, static_cast<int64_t>(3 * replica), 3));
    }
    add(input.narrow(0, 0, 3)); // replica 0's is added to the others' sum
    tandem::DataParallel model(net, on_devices(count).bucket_cap_bytes(50));
    for (int run = 0; run < 20; ++run) {
      const auto grads = grads_for(model(input));
      for (size_t index = 0; index < grads.size(); ++index) {
        CHECK(is_equal(grads[index], expected[index]));
      }
    }
  }
}

TEST_CASE("gradients have the same bits at every run", "[dp]") {
  for (const size_t count : {2, 3, 4, 5}) {
    const auto net = make_base<ConvLinearImpl>(1);
    net->to(at::kFloat);
    tandem::DataParallel model(net, on_devices(count).bucket_cap_bytes(50));
    const auto input = ConvLinearImpl::input(13, 3).to(at::kFloat);
    std::vector<at::Tensor> first;
    for (int run = 0; run < 30; ++run) {
      net->zero_grad();
      model(input).sin().sum().backward();
      const auto grads = snapshot(grads_of(*net));
      if (run == 0) {
        first = grads;
      }
      for (size_t index = 0; index < grads.size(); ++index) {
        CHECK(is_equal(grads[index], first[index]));
      }
    }
  }
}
