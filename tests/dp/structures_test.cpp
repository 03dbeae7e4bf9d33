#include <map>
#include <unordered_map>
#include <variant>

#include <tandem/core/errors.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace dp_structures {

using Variant = std::variant<int, at::Tensor>;
using ByName = std::unordered_map<std::string, at::Tensor>;

struct Sample {
  at::Tensor data;
  std::map<std::string, at::Tensor> unused;
};
TANDEM_TREE_FIELDS(Sample, data, unused)

} // namespace dp_structures

TEST_CASE("nested inputs keep their structure", "[dp][DP-05]") {
  using Nested =
      std::tuple<at::Tensor, std::pair<at::Tensor, at::Tensor>, at::Tensor>;
  const auto pick = [](const Nested& input) {
    return std::get<1>(input).first;
  };
  for (const size_t devices : {1, 2, 4}) {
    auto model = wrap_function(pick, on_devices(devices));
    const auto x = normal({7, 2}, 1);
    const Nested input{x.cos(), {x.sin(), x}, x.sin()};
    CHECK(is_equal(model(input), x.sin()));
  }
}

TEST_CASE("tensors, numbers and absent optionals mix", "[dp][DP-06]") {
  const auto mixed = [](const at::Tensor& v1,
                        const at::Tensor& v2,
                        float factor,
                        const std::optional<at::Tensor>& v3) {
    const auto product = v1 * v2;
    return factor * (v3 ? product + *v3 : product);
  };
  const auto pair = devices(2);
  const std::vector<at::Device> reversed{pair[1], pair[0]};
  for (const auto& list : {devices(1), pair, reversed, devices(4)}) {
    auto model = wrap_function(mixed, on_devices(2).devices(list));
    const auto v1 = normal({6, 3}, 1).requires_grad_();
    const auto v2 = normal({6, 3}, 2).requires_grad_();
    const auto v3 = normal({6, 3}, 3);
    CHECK(is_equal(
        model(v1, v2, 2.0F, std::optional<at::Tensor>()),
        2 * (v1 * v2)));
    const auto output = model(v1, v2, 2.0F, std::optional<at::Tensor>(v3));
    CHECK(is_equal(output, 2 * (v1 * v2 + v3)));
    output.sum().backward();
    CHECK(v1.grad().equal(2 * v2.detach()));
    CHECK(v2.grad().equal(2 * v1.detach()));
  }
}

TEST_CASE("undefined tensors reach the module as undefined", "[dp][DP-06]") {
  const auto add = [](const at::Tensor& a, const at::Tensor& b) {
    return b.defined() ? a + b : a;
  };
  auto model = wrap_function(add, on_devices(2));
  const auto a = normal({4}, 1);
  CHECK(is_equal(model(a, at::Tensor()), a));
}

TEST_CASE("empty containers reach the module as empty ones", "[dp][DP-07]") {
  const auto check_empty = [](const dp_structures::Sample& sample,
                              const std::vector<at::Tensor>& list,
                              const std::tuple<>&) {
    TORCH_CHECK(sample.unused.empty() && list.empty());
    return sample.data * 2;
  };
  for (const size_t devices : {1, 2, 4}) {
    auto model = wrap_function(check_empty, on_devices(devices));
    const auto data = normal({5, 2}, 1);
    const dp_structures::Sample sample{data, {}};
    CHECK(is_equal(
        model(sample, std::vector<at::Tensor>(), std::tuple<>()),
        data * 2));
  }
}

TEST_CASE("variants and unordered maps pass both ways", "[dp][DP-06]") {
  using dp_structures::ByName;
  using dp_structures::Variant;
  const auto swap = [](const Variant& first, const ByName& named) {
    const auto x = std::holds_alternative<int>(first)
        ? named.at("x") * std::get<int>(first)
        : named.at("x") * std::get<at::Tensor>(first);
    return std::make_pair(
        ByName{{"sum", x + named.at("y")}, {"x", x}},
        Variant(named.at("y")));
  };
  for (const size_t devices : {1, 2, 4}) {
    auto model = wrap_function(swap, on_devices(devices));
    const auto x = normal({6, 2}, 1);
    const auto y = normal({6, 2}, 2);
    const ByName named{{"y", y}, {"x", x}};
    const auto [by_number, number_kept] = model(Variant(3), named);
    CHECK(is_equal(by_number.at("sum"), x * 3 + y));
    CHECK(is_equal(std::get<at::Tensor>(number_kept), y));
    const auto [by_tensor, tensor_kept] = model(Variant(y), named);
    CHECK(is_equal(by_tensor.at("x"), x * y));
  }
}

TEST_CASE("nested outputs are gathered leaf by leaf", "[dp][DP-09]") {
  using Inner = std::tuple<at::Tensor, at::Tensor, std::vector<at::Tensor>>;
  using Map = std::map<std::string, std::vector<at::Tensor>>;
  using Outer = std::tuple<at::Tensor, Inner, at::Tensor, Map, int>;
  const auto nested = [](const at::Tensor& x) {
    return Outer{
        x,
        {x.sin(), x.cos(), {x + 1}},
        x,
        {{"a", {x}}, {"b", {x.sin(), x}}},
        static_cast<int>(x.size(0))};
  };
  const size_t count = GENERATE(2, 4);
  auto model = wrap_function(nested, on_devices(count));
  const auto x = normal({5, 2}, 1);
  const auto [first, inner, third, map, rows] = model(x);
  CHECK(is_equal(first, x));
  CHECK(is_equal(std::get<0>(inner), x.sin()));
  CHECK(is_equal(std::get<1>(inner), x.cos()));
  REQUIRE(std::get<2>(inner).size() == 1);
  CHECK(is_equal(std::get<2>(inner)[0], x + 1));
  CHECK(is_equal(third, x));
  REQUIRE(map.at("b").size() == 2);
  CHECK(is_equal(map.at("a")[0], x));
  CHECK(is_equal(map.at("b")[0], x.sin()));
  // A plain value is replica 0's, which has 3 or 2 of the rows.
  CHECK(rows == (count == 2 ? 3 : 2));
}

TEST_CASE("outputs of different structure name the entry", "[dp][DP-10]") {
  using Map = std::map<std::string, at::Tensor>;
  const auto by_rows = [](const at::Tensor& x) {
    return x.size(0) == 3 ? Map{{"a", x}} : Map{{"a", x}, {"b", x}};
  };
  auto model = wrap_function(by_rows, on_devices(2));
  REQUIRE_THROWS_AS(model(torch::ones({5})), tandem::ShapeError);
  const auto message = message_thrown_by([&] { model(torch::ones({5})); });
  CHECK(contains(message, "replica 1"));
  CHECK(contains(message, "\"b\""));
  CHECK(model(torch::ones({6})).at("a").size(0) == 6);
}

TEST_CASE("outputs of different shape name entry and shapes", "[dp][DP-10]") {
  const auto by_rows = [](const at::Tensor& x) {
    return std::make_pair(x, torch::ones({x.size(0), x.size(0)}));
  };
  auto model = wrap_function(by_rows, on_devices(2));
  const auto message = message_thrown_by([&] { model(torch::ones({5})); });
  CHECK(contains(message, "output [1]"));
  CHECK(contains(message, "[rows, 3]"));
  CHECK(contains(message, "[rows, 2]"));
}
