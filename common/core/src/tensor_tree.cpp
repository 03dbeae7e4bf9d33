#include <tandem/core/tensor_tree.h>

namespace tandem::detail {

std::string_view field_name(std::string_view names, size_t index) {
  for (; index > 0; --index) {
    names.remove_prefix(names.find(',') + 1);
  }
  names = names.substr(0, names.find(','));
  names.remove_prefix(names.find_first_not_of(' '));
  return names.substr(0, names.find(' '));
}

} // namespace tandem::detail
