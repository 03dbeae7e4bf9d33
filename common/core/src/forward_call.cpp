#include <tandem/core/forward_call.h>

#include <algorithm>

#include <tandem/core/tree_visitors.h>

namespace tandem {

void invoke_on(
    ForwardCall& call,
    torch::nn::Module& module,
    at::Device device) {
  TensorCollector inputs;
  call.visit_inputs(inputs);
  const auto is_elsewhere = [&](const at::Tensor& tensor) {
    return tensor.defined() && tensor.device() != device;
  };
  if (std::none_of(
          inputs.tensors.begin(),
          inputs.tensors.end(),
          is_elsewhere)) {
    call.invoke(module);
    return;
  }
  for (auto& tensor : inputs.tensors) {
    if (is_elsewhere(tensor)) {
      tensor = tensor.to(device, /*non_blocking=*/true);
    }
  }
  call.make_chunks(1);
  TensorReplacer replacer(inputs.tensors);
  call.write_chunk_inputs(0, replacer);
  call.invoke_chunk(module, 0);
  call.adopt_chunk_output(0);
}

} // namespace tandem
