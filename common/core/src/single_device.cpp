#include <tandem/core/single_device.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/core/named_tensors.h>

namespace tandem::detail {

namespace {

at::Device device_of(const torch::nn::Module& module) {
  const auto parameters = unique_parameters(module);
  if (!parameters.empty()) {
    return parameters.front().tensor.device();
  }
  const auto buffers = unique_buffers(module);
  return buffers.empty() ? at::Device(at::kCPU)
                         : buffers.front().tensor.device();
}

void check_device(
    const std::vector<NamedTensor>& tensors,
    const std::string& kind,
    at::Device device) {
  for (const auto& tensor : tensors) {
    if (tensor.tensor.device() != device) {
      throw ConfigError(fmt::format(
          "SingleDevice: {} '{}': expected on {}, got {}. Move the module "
          "there before it is wrapped: module->to(device)",
          kind,
          tensor.name,
          device.str(),
          tensor.tensor.device().str()));
    }
  }
}

} // namespace

SingleDeviceEngine::SingleDeviceEngine(
    const torch::nn::Module& module,
    const SingleDeviceOptions& options)
    : device_(options.device().value_or(device_of(module))) {
  check_device(unique_parameters(module), "parameter", device_);
  check_device(unique_buffers(module), "buffer", device_);
}

void SingleDeviceEngine::run(ForwardCall& call, torch::nn::Module& module) {
  invoke_on(call, module, device_);
  ++counters_.forwards;
}

std::string SingleDeviceEngine::describe(
    const torch::nn::Module& module) const {
  return fmt::format(
      "SingleDevice on {}: {}, {}. No replicas, no communication.",
      device_.str(),
      summarize(unique_parameters(module), "parameter"),
      summarize(unique_buffers(module), "buffer"));
}

} // namespace tandem::detail
