#include <fmt/format.h>

#include <tandem/ddp/detail/engine.h>

#include "divergence_check.h"
#include "module_tensors.h"
#include "rank_statistics.h"
#include "reducer.h"

namespace tandem::detail {

namespace {

const char* buffer_text(BufferPolicy policy) {
  switch (policy) {
    case BufferPolicy::kFirst:
      return "rank 0's at each synchronised forward";
    case BufferPolicy::kMerge:
      return "rank 0's at each synchronised forward, but running statistics "
             "are merged after it";
    case BufferPolicy::kNone:
      break;
  }
  return "each rank's own";
}

} // namespace

DDPLoggingData DistributedEngine::logging_data() const {
  return reducer_ ? reducer_->logging_data() : DDPLoggingData();
}

std::string DistributedEngine::describe() const {
  return fmt::format(
      "DistributedDataParallel, rank {} of {}, on {} over {}: {}, {}. {}",
      group_->rank(),
      group_->size(),
      device_.str(),
      group_->backend_name(device_.type()),
      summarize(tensors_->parameters, "parameter"),
      summarize(tensors_->buffers, "buffer"),
      reducer_ ? fmt::format(
                     "{} Buffers are {}.",
                     reducer_->describe(),
                     buffer_text(options_.buffer_policy()))
               : std::string("Alone: nothing is installed or sent."));
}

Counters DistributedEngine::counters() const {
  Counters total = counters_;
  if (reducer_) {
    const auto reduced = reducer_->counters();
    total.collectives += reduced.collectives;
    total.bytes_moved += reduced.bytes_moved;
  }
  if (divergence_) {
    const auto compared = divergence_->counters();
    total.collectives += compared.collectives;
    total.bytes_moved += compared.bytes_moved;
  }
  if (rank_statistics_) {
    const auto met = rank_statistics_->counters();
    total.collectives += met.collectives;
    total.bytes_moved += met.bytes_moved;
  }
  return total;
}

} // namespace tandem::detail
