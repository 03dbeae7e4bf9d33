#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/core/tensor_tree.h>

namespace tandem {

/// Collects the handles of all tensors of a tree, undefined ones included.
class TensorCollector final : public TreeReader {
 public:
  void tensor(const at::Tensor& leaf) override {
    tensors.push_back(leaf);
  }

  std::vector<at::Tensor> tensors;
};

/// Replaces the tensors of a tree, in order, by those given.
class TensorReplacer final : public TreeWriter {
 public:
  /// `replacements` has as many tensors as the tree and outlives the visitor.
  explicit TensorReplacer(const std::vector<at::Tensor>& replacements)
      : replacements_(replacements) {}

  void tensor(at::Tensor& leaf) override {
    leaf = replacements_.at(next_++);
  }

 private:
  const std::vector<at::Tensor>& replacements_;
  size_t next_ = 0;
};

/// Records where the tensors of a tree sit (`[1].mask`, `["logits"][0]`; empty
/// for a tree that is one tensor), and its structure as one comparable text.
class StructureReader final : public TreeReader {
 public:
  void enter(size_t size) override;
  void child(size_t index) override;
  void child(std::string_view key) override;
  void leave() override;
  void plain_value() override;
  void tensor(const at::Tensor& leaf) override;

  /// One path per tensor.
  std::vector<std::string> tensor_paths;
  /// One entry per tensor, plain value and empty container: path and kind.
  std::vector<std::string> entries;

 private:
  std::string path() const;

  std::vector<std::string> segments_;
  std::vector<size_t> sizes_;
};

/// Tensors of any tree. Example: `tensors_in(std::make_pair(x, y))`.
template <typename Tree>
std::vector<at::Tensor> tensors_in(const Tree& tree) {
  TensorCollector collector;
  visit_tree(tree, collector);
  return std::move(collector.tensors);
}

} // namespace tandem
