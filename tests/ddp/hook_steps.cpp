#include "hook_steps.h"

#include <cstddef>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/process_group.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/flat_buffer.h>

namespace tandem::test {

std::vector<NamedTensor> zeros_as_parameters(
    const std::vector<std::vector<int64_t>>& sizes,
    at::ScalarType dtype) {
  std::vector<NamedTensor> parameters;
  for (size_t index = 0; index < sizes.size(); ++index) {
    parameters.push_back(
        {std::to_string(index), torch::zeros(sizes[index], dtype)});
  }
  return parameters;
}

std::vector<at::Tensor> reduce_with(
    comm::CommHook& hook,
    const testing::RankContext& context,
    const std::vector<NamedTensor>& parameters,
    const std::vector<at::Tensor>& gradients) {
  comm::GradBucket bucket(
      /*index=*/0,
      /*is_last=*/true,
      flatten_copy(gradients),
      parameters);
  const auto future = hook.run(bucket);
  auto& group = *context.group();
  group.wait(comm::work_of(future, group.timeout()), hook.name());
  bucket.set_buffer(hook.collect(bucket, future));
  return bucket.gradients();
}

std::vector<double> errors_of_repeated_mean(
    const std::function<std::shared_ptr<comm::CommHook>()>& make_hook,
    int64_t num_steps,
    uint64_t seed) {
  return testing::run_ranks(2, [&](testing::RankContext& context) {
    const auto hook = make_hook();
    const auto parameters = zeros_as_parameters({{8, 8}});
    hook->attach(context.group(), parameters);
    auto generator = at::detail::createCPUGenerator(seed);
    const auto all = torch::randn({2, 8, 8}, generator);
    auto sum = torch::zeros({8, 8});
    for (int64_t step = 0; step < num_steps; ++step) {
      sum += reduce_with(
          *hook,
          context,
          parameters,
          {all[context.rank()].clone()})[0];
    }
    const auto mean = all.mean(0);
    return ((sum / num_steps - mean).norm() / mean.norm()).item<double>();
  });
}

} // namespace tandem::test
