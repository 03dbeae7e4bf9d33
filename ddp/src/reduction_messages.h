#pragma once

#include <string>
#include <vector>

#include <tandem/comm/process_group.h>

#include "bucket.h"
#include "module_tensors.h"

namespace tandem::detail {

/// What is wrong with a step, for `ConfigError`.
///
/// `missing`: the parameters that got no gradient.
std::string message_for_missing(
    const comm::ProcessGroup& group,
    const ModuleTensors& tensors,
    const std::vector<size_t>& missing,
    bool is_static_graph);
std::string message_for_second_gradient(
    const comm::ProcessGroup& group,
    const NamedTensor& parameter,
    bool find_unused);
/// A gradient that a static graph does not have.
std::string message_for_changed_graph(
    const comm::ProcessGroup& group,
    const NamedTensor& parameter,
    int64_t expected);

/// For people: numbers and sizes of buckets.
std::string describe_buckets(const std::vector<Bucket>& buckets);

} // namespace tandem::detail
