#include <variant>

#include <torch/torch.h>

#include <tandem/core/tensor_tree.h>
#include <tandem/core/tree_visitors.h>

#include "tandem_catch.h"

namespace tree_test {

enum class Mode { kFast, kSlow };

struct Sample {
  at::Tensor image;
  std::optional<at::Tensor> mask;
  Mode mode = Mode::kFast;
};
TANDEM_TREE_FIELDS(Sample, image, mask, mode)

struct Opaque {
  int value = 0;
};

} // namespace tree_test

template <>
inline constexpr bool tandem::is_plain_value<tree_test::Opaque> = true;

namespace {

using tandem::StructureReader;
using tandem::TensorReplacer;
using tandem::tensors_in;
using tandem::visit_tree;

at::Tensor number(double value) {
  return at::full({1}, value);
}

template <typename Tree>
std::vector<std::string> paths_of(const Tree& tree) {
  StructureReader reader;
  visit_tree(tree, reader);
  return reader.tensor_paths;
}

template <typename Tree>
std::vector<std::string> entries_of(const Tree& tree) {
  StructureReader reader;
  visit_tree(tree, reader);
  return reader.entries;
}

} // namespace

TEST_CASE("tensor tree lists tensors of every container in order", "[core]") {
  using Nested = std::tuple<
      at::Tensor,
      std::pair<std::vector<at::Tensor>, std::array<at::Tensor, 2>>,
      std::map<std::string, at::Tensor>,
      std::optional<at::Tensor>,
      std::variant<int, at::Tensor>>;
  const Nested tree{
      number(0),
      {{number(1), number(2)}, {number(3), number(4)}},
      {{"b", number(6)}, {"a", number(5)}},
      number(7),
      number(8)};
  const auto tensors = tensors_in(tree);
  REQUIRE(tensors.size() == 9);
  for (size_t index = 0; index < tensors.size(); ++index) {
    CHECK(tensors[index].item<double>() == static_cast<double>(index));
  }
}

TEST_CASE("tensor tree names where each tensor sits", "[core]") {
  const std::tuple<at::Tensor, std::map<std::string, std::vector<at::Tensor>>>
      tree{number(0), {{"logits", {number(1), number(2)}}}};
  CHECK(
      paths_of(tree) ==
      std::vector<std::string>{
          "[0]",
          "[1][\"logits\"][0]",
          "[1][\"logits\"][1]"});
  CHECK(paths_of(number(1)) == std::vector<std::string>{""});
  const std::variant<int, at::Tensor> second = number(1);
  CHECK(paths_of(second) == std::vector<std::string>{"[1]"});
}

TEST_CASE("tensor tree walks a declared aggregate by field", "[core]") {
  const tree_test::Sample sample{number(1), number(2), tree_test::Mode::kSlow};
  CHECK(
      entries_of(sample) ==
      std::vector<std::string>{
          "[\"image\"] tensor",
          "[\"mask\"][0] tensor",
          "[\"mode\"] value"});
}

TEST_CASE("tensor tree tells empties apart from present parts", "[core]") {
  const tree_test::Sample absent{number(1), std::nullopt, {}};
  CHECK(entries_of(absent)[1] == "[\"mask\"] empty");
  CHECK(
      entries_of(std::vector<at::Tensor>{}) ==
      std::vector<std::string>{" empty"});
  CHECK(tensors_in(std::optional<at::Tensor>()).empty());
}

TEST_CASE("tensor tree orders an unordered map by key", "[core]") {
  std::unordered_map<int, at::Tensor> map;
  for (const int key : {7, 12, 3, 100, 5, 1}) {
    map.emplace(key, number(key));
  }
  std::vector<double> values;
  for (const auto& tensor : tensors_in(map)) {
    values.push_back(tensor.item<double>());
  }
  // As text.
  CHECK(values == std::vector<double>{1, 100, 12, 3, 5, 7});
  CHECK(paths_of(map)[2] == "[\"12\"]");
}

TEST_CASE("tensor tree takes types declared plain and vector<bool>", "[core]") {
  const std::tuple<tree_test::Opaque, std::vector<bool>, std::string, float>
      tree{{3}, {true, false}, "text", 1.5F};
  CHECK(tensors_in(tree).empty());
  CHECK(entries_of(tree).size() == 4);
}

TEST_CASE(
    "replacer writes tensors back in the order they were read",
    "[core]") {
  std::pair<std::vector<at::Tensor>, tree_test::Sample> tree{
      {number(1), number(2)},
      {number(3), number(4), {}}};
  auto tensors = tensors_in(tree);
  for (auto& tensor : tensors) {
    tensor = tensor * 10;
  }
  TensorReplacer replacer(tensors);
  visit_tree(tree, replacer);
  CHECK(tree.first[1].item<double>() == 20);
  CHECK(tree.second.mask->item<double>() == 40);
}

TEST_CASE("tensor tree keeps undefined tensors in their place", "[core]") {
  const std::vector<at::Tensor> tree{at::Tensor(), number(1)};
  const auto tensors = tensors_in(tree);
  REQUIRE(tensors.size() == 2);
  CHECK_FALSE(tensors[0].defined());
}
