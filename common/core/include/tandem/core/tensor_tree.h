#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

/// A tensor tree is what `forward` takes or returns: a tensor, or an optional,
/// vector, array, pair, tuple, map, variant or user aggregate of tensor trees
/// and plain values. Everything that Tandem does with arguments and results
/// (scatter, gather, finding tensors, counting bytes) is a visitor over it.

/// Declares the fields of an aggregate, all of them and in order, so that it
/// can be an argument or a result of `forward`. To be written after the type,
/// in its namespace. A field that is left out does not compile.
///
/// Example:
/// ```cpp
/// struct Sample { torch::Tensor image; std::optional<torch::Tensor> mask; };
/// TANDEM_TREE_FIELDS(Sample, image, mask)
/// ```
#define TANDEM_TREE_FIELDS(Type, ...)                                          \
  [[maybe_unused]] inline auto tandem_tree_fields(Type& tandem_object) {       \
    auto& [__VA_ARGS__] = tandem_object;                                       \
    return std::tie(__VA_ARGS__);                                              \
  }                                                                            \
  [[maybe_unused]] inline auto tandem_tree_fields(const Type& tandem_object) { \
    const auto& [__VA_ARGS__] = tandem_object;                                 \
    return std::tie(__VA_ARGS__);                                              \
  }                                                                            \
  [[maybe_unused]] constexpr std::string_view tandem_tree_field_names(         \
      const Type*) {                                                           \
    return #__VA_ARGS__;                                                       \
  }

namespace tandem {

/// True for a type without tensors inside, which every replica receives as a
/// copy. Specialise it for a type of your own:
/// `template <> inline constexpr bool tandem::is_plain_value<Mode> = true;`
template <typename T>
inline constexpr bool is_plain_value = std::is_arithmetic_v<T> ||
    std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::string_view> || std::is_same_v<T, const char*> ||
    std::is_same_v<T, std::monostate> || std::is_same_v<T, std::nullopt_t> ||
    std::is_same_v<T, c10::Device> || std::is_same_v<T, c10::Scalar>;

/// What a walk over a tensor tree reports, in order of declaration.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;

  /// A container with `size` children begins; `size` tells an absent optional
  /// (0) from a present one (1).
  virtual void enter(size_t /*size*/) {}
  /// The next child is the one at `index`.
  virtual void child(size_t /*index*/) {}
  /// The next child is the one named `key` (a map's key or a field).
  virtual void child(std::string_view /*key*/) {}
  virtual void leave() {}
  virtual void plain_value() {}
};

/// Visits tensors that it may only read.
class TreeReader : public TreeVisitor {
 public:
  virtual void tensor(const at::Tensor& leaf) = 0;
};

/// Visits tensors that it may replace.
class TreeWriter : public TreeVisitor {
 public:
  virtual void tensor(at::Tensor& leaf) = 0;
};

namespace detail {

template <typename T>
concept DeclaredAggregate = requires(T& value) {
  tandem_tree_fields(value);
};

template <typename T>
inline constexpr bool always_false = false;

template <typename Key>
std::string key_text(const Key& key) {
  if constexpr (std::is_convertible_v<const Key&, std::string>) {
    return key;
  } else {
    static_assert(
        std::is_arithmetic_v<Key> || std::is_enum_v<Key>,
        "tandem: the keys of a map in a tensor tree must be strings, numbers "
        "or enumerators");
    if constexpr (std::is_enum_v<Key>) {
      return std::to_string(static_cast<std::underlying_type_t<Key>>(key));
    } else {
      return std::to_string(key);
    }
  }
}

/// The `index`-th name of the list that `TANDEM_TREE_FIELDS` recorded.
std::string_view field_name(std::string_view names, size_t index);

/// Primary template: plain values and declared aggregates. `T` is never const.
template <typename T>
struct TreeNode {
  static_assert(
      is_plain_value<T> || DeclaredAggregate<T>,
      "tandem: this type (T in the note below) cannot be an argument or result "
      "of a wrapped forward. Supported: Tensor; optional, vector, array, pair, "
      "tuple, map, unordered_map and variant of supported types; numbers, "
      "enumerators and strings; aggregates declared by "
      "TANDEM_TREE_FIELDS(Type, fields...); types for which "
      "tandem::is_plain_value<Type> is specialised as true");

  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor);
};

} // namespace detail

/// Walks `tree` and calls `visitor` for each part of it.
template <typename Tree, typename Visitor>
void visit_tree(Tree& tree, Visitor& visitor) {
  detail::TreeNode<std::remove_const_t<Tree>>::walk(tree, visitor);
}

namespace detail {

template <typename Tuple, typename Visitor>
void walk_tuple(Tuple& tuple, Visitor& visitor) {
  visitor.enter(std::tuple_size_v<std::remove_const_t<Tuple>>);
  std::apply(
      [&](auto&... elements) {
        size_t index = 0;
        ((visitor.child(index++), visit_tree(elements, visitor)), ...);
      },
      tuple);
  visitor.leave();
}

template <typename Range, typename Visitor>
void walk_sequence(Range& range, Visitor& visitor) {
  visitor.enter(range.size());
  size_t index = 0;
  for (auto& element : range) {
    visitor.child(index++);
    visit_tree(element, visitor);
  }
  visitor.leave();
}

template <typename Map, typename Visitor>
void walk_map(Map& map, Visitor& visitor) {
  visitor.enter(map.size());
  for (auto& [key, value] : map) {
    visitor.child(std::string_view(key_text(key)));
    visit_tree(value, visitor);
  }
  visitor.leave();
}

/// Visits in the order of the keys' text, since the order of an unordered map
/// may differ between two maps with the same keys.
template <typename Map, typename Visitor>
void walk_unordered_map(Map& map, Visitor& visitor) {
  std::map<std::string, decltype(&map.begin()->second)> sorted;
  for (auto& [key, value] : map) {
    sorted.emplace(key_text(key), &value);
  }
  visitor.enter(sorted.size());
  for (auto& [key, value] : sorted) {
    visitor.child(std::string_view(key));
    visit_tree(*value, visitor);
  }
  visitor.leave();
}

template <typename T>
template <typename Value, typename Visitor>
void TreeNode<T>::walk(Value& value, Visitor& visitor) {
  if constexpr (DeclaredAggregate<T>) {
    const auto names = tandem_tree_field_names(static_cast<const T*>(nullptr));
    auto fields = tandem_tree_fields(value);
    visitor.enter(std::tuple_size_v<decltype(fields)>);
    std::apply(
        [&](auto&... field) {
          size_t index = 0;
          ((visitor.child(field_name(names, index++)),
            visit_tree(field, visitor)),
           ...);
        },
        fields);
    visitor.leave();
  } else {
    visitor.plain_value();
  }
}

template <>
struct TreeNode<at::Tensor> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    visitor.tensor(value);
  }
};

template <typename T>
struct TreeNode<std::optional<T>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    visitor.enter(value.has_value() ? 1 : 0);
    if (value.has_value()) {
      visitor.child(size_t{0});
      visit_tree(*value, visitor);
    }
    visitor.leave();
  }
};

template <typename T, typename Allocator>
struct TreeNode<std::vector<T, Allocator>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    walk_sequence(value, visitor);
  }
};

/// `vector<bool>` has no addressable elements, and no tensors.
template <typename Allocator>
struct TreeNode<std::vector<bool, Allocator>> {
  template <typename Value, typename Visitor>
  static void walk(Value&, Visitor& visitor) {
    visitor.plain_value();
  }
};

template <typename T, size_t N>
struct TreeNode<std::array<T, N>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    walk_sequence(value, visitor);
  }
};

template <typename First, typename Second>
struct TreeNode<std::pair<First, Second>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    walk_tuple(value, visitor);
  }
};

template <typename... Elements>
struct TreeNode<std::tuple<Elements...>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    walk_tuple(value, visitor);
  }
};

template <typename Key, typename T, typename Compare, typename Allocator>
struct TreeNode<std::map<Key, T, Compare, Allocator>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    walk_map(value, visitor);
  }
};

template <typename Key, typename T, typename... Rest>
struct TreeNode<std::unordered_map<Key, T, Rest...>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    walk_unordered_map(value, visitor);
  }
};

template <typename... Alternatives>
struct TreeNode<std::variant<Alternatives...>> {
  template <typename Value, typename Visitor>
  static void walk(Value& value, Visitor& visitor) {
    visitor.enter(1);
    visitor.child(value.index());
    std::visit([&](auto& held) { visit_tree(held, visitor); }, value);
    visitor.leave();
  }
};

} // namespace detail
} // namespace tandem
