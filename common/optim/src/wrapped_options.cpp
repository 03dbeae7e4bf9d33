#include "wrapped_options.h"

#include <cstddef>

#include <c10/util/Exception.h>

namespace tandem::detail {

void copy_options(
    const torch::optim::Optimizer& from,
    torch::optim::Optimizer& to) {
  TORCH_INTERNAL_ASSERT(from.param_groups().size() == to.param_groups().size());
  for (size_t i = 0; i < from.param_groups().size(); ++i) {
    to.param_groups()[i].set_options(from.param_groups()[i].options().clone());
  }
}

} // namespace tandem::detail
