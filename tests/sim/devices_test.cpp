#include <tandem/sim/sim.h>
#include <tandem/sim/statistics.h>

#include <tandem/testing/error_text.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

/// CHECKs that `function` is LibTorch's error for tensors on both devices.
void check_mixed(
    const std::string& first,
    const std::string& second,
    const std::function<void()>& function) {
  const auto text =
      testing::thrown_text<c10::Error>(function).value_or("nothing thrown");
  INFO(text);
  CHECK(testing::missing_parts(text, {"on the same device", first, second})
            .empty());
}

} // namespace

TEST_CASE("tensors of two devices in one operator are an error", "[sim]") {
  start_devices();
  const auto a = torch::ones({3, 4}, sim::device(0));
  const auto b = torch::ones({3, 4}, sim::device(1));
  const auto check = [](const std::function<void()>& function) {
    check_mixed("sim:0", "sim:1", function);
  };
  check([&] { a + b; });
  check([&] { a.clone().add_(b); });
  check([&] { a.mm(b.t()); });
  check([&] { torch::cat({a, b}); });
  check([&] { torch::stack({a, b}); });
  check([&] { torch::linear(a, b); });
  check([&] { torch::where(a > 0, a, b); });
  check([&] { torch::layer_norm(a, {4}, torch::ones({4}, sim::device(1))); });
  check([&] { at::_foreach_add(Tensors{a}, Tensors{b}); });
  check([&] {
    auto out = torch::empty({3, 4}, sim::device(1));
    torch::add_out(out, a, a);
  });
  check([&] {
    torch::conv2d(
        torch::ones({1, 1, 4, 4}, sim::device(0)),
        torch::ones({1, 1, 3, 3}, sim::device(1)));
  });
}

TEST_CASE(
    "a device's and the CPU's tensors in one operator are an error",
    "[sim]") {
  start_devices();
  const auto a = torch::ones({3, 4}, sim::device(0));
  auto host = torch::ones({3, 4});
  const auto check = [](const std::function<void()>& function) {
    check_mixed("sim:0", "cpu", function);
  };
  check([&] { a + host; });
  check([&] { host + a; });
  check([&] { host.add_(a); });
  check([&] { torch::embedding(a, torch::ones({2}, torch::kLong)); });
  CHECK(same_bits(host, torch::ones({3, 4})));
}

TEST_CASE("CPU tensors of no dimension and CPU indices are allowed", "[sim]") {
  start_devices();
  const auto a = torch::arange(6, sim::device(1));
  CHECK(same_bits(a + torch::tensor(2L), torch::arange(2, 8)));
  CHECK(same_bits(torch::tensor(2L) * a, torch::arange(0, 12, 2)));
  const auto indices = torch::tensor({4L, 1L});
  CHECK(same_bits(a.index({indices}), indices));
  auto b = torch::zeros({3}, sim::device(1));
  b.index_put_({torch::tensor({2L})}, torch::ones({1}, sim::device(1)));
  CHECK(same_bits(b, torch::tensor({0.0F, 0.0F, 1.0F})));
}

TEST_CASE("a gradient on another device is an error", "[sim]") {
  start_devices();
  const auto a = torch::ones({4}, sim::device(0)).requires_grad_();
  CHECK_THROWS_AS(
      (a * 2).backward(torch::ones({4}, sim::device(1))),
      c10::Error);
}

TEST_CASE("copies between devices keep values, layout and dtype", "[sim]") {
  start_devices();
  const auto host = normal({5, 6}, 1);
  const auto a = host.to(sim::device(0));
  const auto b = a.to(sim::device(3));
  CHECK(b.device() == sim::device(3));
  CHECK(same_bits(b, host));
  CHECK(same_bits(a.t().to(sim::device(1)), host.t()));
  CHECK(same_bits(a.to(sim::device(1), torch::kHalf), host.to(torch::kHalf)));
  auto target = torch::zeros({5, 6}, sim::device(2));
  target.copy_(host.slice(0, 0, 1));
  CHECK(same_bits(target, host.slice(0, 0, 1).expand({5, 6})));
  const auto sparse = torch::eye(3).to_sparse();
  CHECK(same_bits(sparse.to(sim::device(0)).to(sim::device(1)), sparse));
}

TEST_CASE("autograd crosses devices in both directions", "[sim]") {
  start_devices();
  const auto host = normal({4}, 2).requires_grad_();
  const auto there = (host.to(sim::device(0)) * 2).to(sim::device(1));
  (there * there).sum().cpu().backward();
  CHECK(same_bits(host.grad(), host.detach() * 2 * 2 * 2));
}

TEST_CASE("each device has an autograd thread of its own", "[sim]") {
  start_devices(2);
  std::vector<std::thread::id> threads(2);
  Tensors leaves;
  std::vector<at::Tensor> sums;
  for (int64_t index = 0; index < 2; ++index) {
    const auto leaf = torch::ones({2}, sim::device(index)).requires_grad_();
    const auto doubled = leaf * 2;
    doubled.register_hook([&threads, index](const at::Tensor& /*gradient*/) {
      threads.at(static_cast<size_t>(index)) = std::this_thread::get_id();
    });
    leaves.push_back(leaf);
    sums.push_back(doubled.sum().cpu());
  }
  (sums[0] + sums[1]).backward();
  CHECK(threads[0] != std::this_thread::get_id());
  CHECK(threads[1] != std::this_thread::get_id());
  CHECK(threads[0] != threads[1]);
}

TEST_CASE("the current device is the thread's own", "[sim]") {
  start_devices(3);
  const c10::DeviceGuard guard(sim::device(2));
  CHECK(torch::ones({1}, at::Device("sim")).device() == sim::device(2));
  at::Device other(at::kCPU);
  std::thread([&] {
    other = torch::ones({1}, at::Device("sim")).device();
  }).join();
  CHECK(other == sim::device(0));
}

TEST_CASE("counters tell kernels, and copies by device", "[sim]") {
  start_devices(2);
  const auto host = torch::ones({10});
  sim::reset_counters();
  const auto a = host.to(sim::device(0));
  const auto b = a.to(sim::device(1));
  const auto c = a.to(sim::device(1), torch::kHalf);
  const auto sum = b + b;
  const auto back = sum.cpu();
  const auto copies = [](at::Device source, at::Device destination) {
    const auto counted = sim::copy_counters(source, destination);
    return std::make_pair(counted.copies, counted.bytes);
  };
  using Pair = std::pair<int64_t, int64_t>;
  CHECK(copies(at::kCPU, sim::device(0)) == Pair(1, 40));
  CHECK(copies(sim::device(0), sim::device(1)) == Pair(2, 80));
  CHECK(copies(sim::device(1), sim::device(0)) == Pair(0, 0));
  CHECK(copies(sim::device(1), at::kCPU) == Pair(1, 40));
  // Two copies and the sum; the copy back.
  CHECK(sim::device_counters(sim::device(1)).operators == 4);
  CHECK(sim::device_counters(sim::device(1)).kernel_time.count() > 0);
  sim::reset_counters();
  CHECK(sim::device_counters(sim::device(1)).operators == 0);
  CHECK(copies(at::kCPU, sim::device(0)) == Pair(0, 0));
}

TEST_CASE("a copy over a slow link takes its time", "[sim]") {
  using std::chrono::milliseconds;
  sim::init(
      {.devices = 2,
       .link_latency = milliseconds(20),
       .link_bytes_per_s = 1e6});
  const auto time_of = [](const std::function<void()>& function) {
    const auto start = std::chrono::steady_clock::now();
    function();
    return std::chrono::steady_clock::now() - start;
  };
  const auto a = torch::ones({10000}, sim::device(0)); // 40 ms at 1 MB/s
  CHECK(time_of([&] { a.to(sim::device(1)); }) >= milliseconds(60));
  const auto same = torch::empty_like(a);
  CHECK(time_of([&] { same.copy_(a); }) < milliseconds(20));
}

} // namespace tandem::sim_test
