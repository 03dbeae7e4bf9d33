#include <tandem/core/tree_visitors.h>

#include <fmt/format.h>

namespace tandem {

void StructureReader::enter(size_t size) {
  sizes_.push_back(size);
  segments_.emplace_back();
  if (size == 0) {
    entries.push_back(path() + " empty");
  }
}

void StructureReader::child(size_t index) {
  // The arguments of a call are children without an enclosing container.
  if (segments_.empty()) {
    segments_.emplace_back();
  }
  segments_.back() = fmt::format("[{}]", index);
}

void StructureReader::child(std::string_view key) {
  segments_.back() = fmt::format("[\"{}\"]", key);
}

void StructureReader::leave() {
  sizes_.pop_back();
  segments_.pop_back();
}

void StructureReader::plain_value() {
  entries.push_back(path() + " value");
}

void StructureReader::tensor(const at::Tensor& /*leaf*/) {
  tensor_paths.push_back(path());
  entries.push_back(tensor_paths.back() + " tensor");
}

std::string StructureReader::path() const {
  std::string joined;
  for (const auto& segment : segments_) {
    joined += segment;
  }
  return joined;
}

} // namespace tandem
