#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/grad_bucket.h>
#include <tandem/core/named_tensors.h>
#include <tandem/testing/rank_threads.h>

namespace tandem::test {

/// Zeros of these sizes as parameters "0", "1" and so on.
std::vector<NamedTensor> zeros_as_parameters(
    const std::vector<std::vector<int64_t>>& sizes,
    at::ScalarType dtype = at::kFloat);

/// One reduction by a hook in a wrapper's place: all gradients in one bucket.
/// Returns what became of them.
std::vector<at::Tensor> reduce_with(
    comm::CommHook& hook,
    const testing::RankContext& context,
    const std::vector<NamedTensor>& parameters,
    const std::vector<at::Tensor>& gradients);

/// Two ranks reduce normal gradients [8, 8], the same ones `num_steps` times.
/// Returns for each rank how far the results' mean is from that of the
/// gradients, relative to its norm.
std::vector<double> errors_of_repeated_mean(
    const std::function<std::shared_ptr<comm::CommHook>()>& make_hook,
    int64_t num_steps,
    uint64_t seed);

} // namespace tandem::test
