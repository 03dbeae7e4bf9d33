#include <tandem/sim/sim.h>
#include <tandem/sim/statistics.h>

#include <tandem/testing/error_text.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

constexpr int64_t kFloatBytes = 4;

int64_t current_bytes(int64_t device) {
  return sim::memory_statistics(sim::device(device)).current_bytes;
}

int64_t peak_bytes(int64_t device) {
  return sim::memory_statistics(sim::device(device)).peak_bytes;
}

at::Tensor floats(int64_t count, int64_t device) {
  return torch::ones({count}, sim::device(device));
}

} // namespace

TEST_CASE("memory counts each device's bytes while tensors live", "[sim]") {
  start_devices(2);
  {
    const auto tensor = floats(100, 1);
    CHECK(current_bytes(1) == 100 * kFloatBytes);
    CHECK(current_bytes(0) == 0);
    const auto view = tensor.slice(0, 10, 20);
    CHECK(current_bytes(1) == 100 * kFloatBytes);
    const auto sum = tensor + tensor;
    CHECK(current_bytes(1) == 200 * kFloatBytes);
    const auto moved = tensor.to(sim::device(0));
    CHECK(current_bytes(0) == 100 * kFloatBytes);
    const auto host = tensor.cpu();
    CHECK(current_bytes(0) + current_bytes(1) == 300 * kFloatBytes);
  }
  CHECK(current_bytes(0) == 0);
  CHECK(current_bytes(1) == 0);
}

TEST_CASE("memory keeps the peak until it is reset", "[sim]") {
  start_devices(1);
  const auto kept = floats(10, 0);
  floats(1000, 0);
  CHECK(peak_bytes(0) >= 1010 * kFloatBytes);
  sim::reset_peak(sim::device(0));
  CHECK(peak_bytes(0) == 10 * kFloatBytes);
  const auto more = floats(5, 0);
  CHECK(peak_bytes(0) == 15 * kFloatBytes);
}

TEST_CASE("a kernel's result takes its memory once", "[sim]") {
  start_devices(1);
  const auto tensor = floats(1000, 0);
  sim::reset_peak(sim::device(0));
  const auto sum = tensor + tensor;
  CHECK(peak_bytes(0) == 2000 * kFloatBytes);
}

TEST_CASE("memory statistics are LibTorch's own too", "[sim]") {
  start_devices(1);
  const auto tensor = floats(10, 0);
  const auto stats =
      c10::getDeviceAllocator(at::kPrivateUse1)->getDeviceStats(0);
  CHECK(stats.allocated_bytes[0].current == 10 * kFloatBytes);
  CHECK(stats.allocated_bytes[0].peak >= 10 * kFloatBytes);
}

TEST_CASE("LibTorch learns the free memory of a device", "[sim]") {
  sim::init({.devices = 2, .capacity_bytes = 1000});
  const auto tensor = floats(100, 1);
  auto& allocator = *c10::getDeviceAllocator(at::kPrivateUse1);
  using Pair = std::pair<size_t, size_t>; // free, total
  CHECK(allocator.getMemoryInfo(0) == Pair(1000, 1000));
  CHECK(allocator.getMemoryInfo(1) == Pair(600, 1000));
}

TEST_CASE(
    "a tensor that does not fit is an out-of-memory error that names device, "
    "asked, free and in use",
    "[sim]") {
  sim::init({.devices = 2, .capacity_bytes = 1000});
  const auto kept = floats(100, 1);
  const auto text = testing::thrown_text<c10::OutOfMemoryError>([] {
                      floats(200, 1);
                    }).value_or("nothing thrown");
  INFO(text);
  CHECK(testing::missing_parts(
            text,
            {"out of memory", "sim:1", "800 bytes", "1000", "600", "400"})
            .empty());
  CHECK(sim::memory_statistics(sim::device(1)).num_out_of_memory == 1);
  CHECK(sim::memory_statistics(sim::device(1)).capacity_bytes == 1000);
  CHECK(floats(200, 0).numel() == 200);
}

TEST_CASE("a program goes on after an out-of-memory error", "[sim]") {
  sim::init({.devices = 1, .capacity_bytes = 1000});
  {
    const auto tensor = floats(150, 0);
    CHECK_THROWS_AS(tensor + tensor, c10::OutOfMemoryError);
    auto out = torch::empty({0}, sim::device(0));
    CHECK_THROWS_AS(
        torch::cat_out(out, {tensor, tensor}),
        c10::OutOfMemoryError);
    CHECK(current_bytes(0) == 150 * kFloatBytes);
    CHECK(same_bits(tensor, torch::ones({150})));
  }
  CHECK(current_bytes(0) == 0);
  CHECK(floats(200, 0).sum().item<float>() == 200);
}

TEST_CASE("a backward leaves no memory behind", "[sim]") {
  start_devices(1);
  {
    const auto weight = floats(64, 0).requires_grad_();
    (weight * weight).exp().sum().backward();
    weight.mutable_grad().reset();
    CHECK(current_bytes(0) == 64 * kFloatBytes);
  }
  CHECK(current_bytes(0) == 0);
}

TEST_CASE("pinned memory is host memory that says so", "[sim]") {
  start_devices(1);
  const auto plain = torch::ones({3});
  const auto pinned = plain.pin_memory();
  CHECK(pinned.is_pinned());
  CHECK_FALSE(plain.is_pinned());
  CHECK(pinned.is_cpu());
  CHECK(same_bits(pinned.to(sim::device(0), true), plain));
  CHECK(pinned.slice(0, 1, 3).is_pinned());
}

} // namespace tandem::sim_test
