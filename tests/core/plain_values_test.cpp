#include <cmath>

#include <torch/torch.h>

#include <tandem/core/flat_buffer.h>
#include <tandem/core/named_tensors.h>
#include <tandem/core/order_statistics.h>

#include "tandem_catch.h"

TEST_CASE("order statistics interpolate as NumPy's default does", "[core]") {
  std::vector<double> values{4, 1, 3, 2};
  const auto statistics = tandem::order_statistics(values);
  CHECK(statistics.min == 1);
  CHECK(statistics.max == 4);
  CHECK(std::abs(statistics.p50 - 2.5) < 1e-12);
  CHECK(std::abs(statistics.p10 - 1.3) < 1e-12);
  CHECK(std::abs(statistics.p90 - 3.7) < 1e-12);
  CHECK(statistics.count == 4);
}

TEST_CASE("order statistics of one value and of none", "[core]") {
  const auto one = tandem::order_statistics({7});
  CHECK(one.p10 == 7);
  CHECK(one.p99 == 7);
  CHECK(tandem::order_statistics({}).count == 0);
}

TEST_CASE("flat layout begins every tensor at a multiple", "[core]") {
  const auto layout = tandem::make_flat_layout({1, 64, 0, 65}, 64);
  CHECK(layout.offsets_elems == std::vector<int64_t>{0, 64, 128, 128});
  CHECK(layout.total_elems == 256);
  CHECK(tandem::make_flat_layout({3, 4}).offsets_elems[1] == 3);
}

TEST_CASE("flat groups keep one dtype each, in order", "[core]") {
  const auto f = torch::ones({1});
  const auto d = torch::ones({1}, torch::kDouble);
  CHECK(
      tandem::group_by_type({f, d, f, d}) ==
      std::vector<std::vector<size_t>>{{0, 2}, {1, 3}});
}

TEST_CASE("flat copy and its reverse give tensors back", "[core]") {
  const auto a = torch::randn({2, 3});
  const auto b = torch::randn({4}).t();
  const auto flat = tandem::flatten_copy({a, b});
  CHECK(flat.numel() == 10);
  const auto x = torch::zeros({2, 3});
  const auto y = torch::zeros({4});
  const auto version = x._version();
  tandem::unflatten_into(flat, {x, y});
  CHECK(x.equal(a));
  CHECK(y.equal(b));
  CHECK(x._version() == version);
}

TEST_CASE("flat view keeps dense strides and may be detached", "[core]") {
  const auto like =
      torch::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const auto flat = torch::arange(200, torch::kFloat);
  auto view = tandem::view_into_flat(flat, 10, like);
  CHECK(view.strides() == like.strides());
  CHECK(view.is_alias_of(flat));
  CHECK(view.storage_offset() == 10);
  CHECK_FALSE(view.is_view());
  CHECK_NOTHROW(view.detach_());
  const auto gaps = torch::randn({4, 4}).slice(1, 0, 4, 2);
  CHECK(tandem::view_into_flat(flat, 0, gaps).is_contiguous());
}

TEST_CASE(
    "named tensors list a tied weight once, by its first name",
    "[core]") {
  struct Tied : torch::nn::Module {
    Tied() {
      auto weight = register_parameter("a", torch::ones({2, 2}));
      register_parameter("b", weight);
      register_parameter("c", torch::ones({3}));
      register_buffer("none", torch::Tensor());
      register_buffer("some", torch::ones({1}));
    }
  };
  const Tied module;
  const auto parameters = tandem::unique_parameters(module);
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].name == "a");
  CHECK(parameters[1].name == "c");
  CHECK(tandem::total_bytes(parameters) == 28);
  REQUIRE(tandem::unique_buffers(module).size() == 1);
}
