#include "base_checks.h"

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::detail {

void check_base_tensors(
    const std::vector<BaseTensor>& base,
    at::Device device) {
  for (const auto& [name, tensor, is_buffer] : base) {
    const char* kind = is_buffer ? "buffer" : "parameter";
    if (tensor.device() != device) {
      throw ConfigError(fmt::format(
          "DataParallel: {} '{}': expected on {}, the first of the wrapper's "
          "devices, got {}. Move the module there: module->to(device)",
          kind,
          name,
          device.str(),
          tensor.device().str()));
    }
    if (tensor.layout() != at::kStrided) {
      throw ConfigError(fmt::format(
          "DataParallel: {} '{}': expected a dense tensor, got layout {}. Keep "
          "it dense, or unregistered and made by the replica_factory",
          kind,
          name,
          c10::str(tensor.layout())));
    }
  }
}

} // namespace tandem::detail
