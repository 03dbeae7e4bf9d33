#include <tandem/optim/model_averager.h>

#include <cstddef>
#include <utility>

#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/comm.h>
#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>
#include <tandem/core/flat_buffer.h>

#include "flat_transfer.h"

namespace tandem {

void average_over(
    comm::ProcessGroup& group,
    const std::vector<at::Tensor>& parameters) {
  if (group.size() == 1) {
    return;
  }
  struct Transfer {
    std::vector<at::Tensor> parameters;
    at::Tensor flat;
    c10::intrusive_ptr<c10d::Work> work;
  };
  std::vector<Transfer> transfers;
  for (const auto& indices : group_by_type(parameters)) {
    std::vector<at::Tensor> some;
    some.reserve(indices.size());
    for (const size_t index : indices) {
      some.push_back(parameters[index]);
    }
    auto flat = flatten_copy(some);
    if (flat.numel() > 0) {
      auto work = group.all_reduce_async(flat, comm::ReduceOp::kMean);
      transfers.push_back({std::move(some), std::move(flat), std::move(work)});
    }
  }
  for (const auto& transfer : transfers) {
    group.wait(transfer.work, "mean of the parameters");
    detail::copy_from_flat(transfer.flat, transfer.parameters);
  }
}

ModelAverager::ModelAverager(std::shared_ptr<comm::ProcessGroup> group)
    : group_(group ? std::move(group) : comm::default_group()) {}

void ModelAverager::average_parameters(
    const std::vector<at::Tensor>& parameters) {
  auto* const group = group_due_at(step_);
  if (group != nullptr) {
    average_over(*group, parameters);
  }
  ++step_;
}

void ModelAverager::set_step(int64_t step) {
  if (step < 0) {
    throw ConfigError(fmt::format(
        "{} averager's step: expected at least 0, got {}",
        comm::rank_tag("optim", group_->rank(), group_->size()),
        step));
  }
  step_ = step;
}

} // namespace tandem
