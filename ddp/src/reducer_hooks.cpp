// What users hang into the reduction.
#include <utility>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "rank_text.h"
#include "reducer.h"

namespace tandem::detail {

void Reducer::register_hook(std::shared_ptr<comm::CommHook> hook) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (queue_.hook() != nullptr) {
    throw ConfigError(fmt::format(
        "{} register_comm_hook: expected to be called once, got '{}' after "
        "'{}'",
        rank_tag(*group_),
        hook->name(),
        queue_.hook()->name()));
  }
  if (num_ready_ > 0 || log_.num_reductions() > 0) {
    throw ConfigError(fmt::format(
        "{} register_comm_hook: expected before the first backward, got '{}' "
        "after it",
        rank_tag(*group_),
        hook->name()));
  }
  if (options_.reduce_op() != comm::ReduceOp::kMean ||
      options_.gradient_predivide_factor()) {
    throw ConfigError(fmt::format(
        "{} register_comm_hook: expected options without reduce_op and "
        "gradient_predivide_factor, which are the hook's business, got '{}' "
        "with them",
        rank_tag(*group_),
        hook->name()));
  }
  std::vector<NamedTensor> parameters;
  for (const auto& bucket : queue_.buckets()) {
    for (const size_t index : bucket.parameters) {
      parameters.push_back(tensors_.trained[index]);
    }
  }
  hook->attach(group_, parameters);
  queue_.set_hook(std::move(hook));
}

void Reducer::set_on_reduced(std::function<void(size_t)> function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  on_reduced_ = std::move(function);
}

} // namespace tandem::detail
