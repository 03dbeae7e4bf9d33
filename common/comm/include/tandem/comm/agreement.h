#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// One thing that all ranks must have alike: a subject by its name ("parameter
/// 'fc.weight'", "option bucket_cap_bytes") and this rank's value as text
/// ("float32 [10, 20] contiguous").
struct Statement {
  std::string subject;
  std::string value;
};

/// Compares the ranks' statements through the store, before any collective.
/// Only digests travel unless they differ; then the first difference, in order,
/// is named on every rank with rank 0's value and the differing rank's.
///
/// A rank whose own checks failed calls `report_failure` in its place, so that
/// the others throw within seconds instead of at the time limit.
///
/// **Collective**, one of the two by each rank. `who` tags messages ("ddp").
/// **Throws** `ConfigError` on disagreement, on every rank; `PeerError` if a
/// rank reported failure; `TimeoutError` naming the ranks that did not answer.
void agree_or_throw(
    ProcessGroup& group,
    const std::string& who,
    const std::vector<Statement>& statements);
void report_failure(
    ProcessGroup& group,
    const std::string& who,
    const std::string& message);

} // namespace tandem::comm
