#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <tandem/core/errors.h>

#include "collective.h"
#include "collective_arguments.h"
#include "process_group_state.h"

namespace tandem::comm {

ProcessGroup::ProcessGroup(
    c10::intrusive_ptr<c10d::ProcessGroup> group,
    c10::intrusive_ptr<c10d::Store> store,
    at::Device device,
    std::chrono::milliseconds timeout,
    std::chrono::milliseconds startup_timeout,
    const std::optional<Diagnostics>& diagnostics)
    : state_(std::make_unique<State>(State{
          .group = std::move(group),
          .store = std::move(store),
          .device = device,
          .timeout = timeout,
          .startup_timeout = startup_timeout,
          .diagnostics =
              diagnostics.value_or(diagnostics_from_env(process_env))})) {
  state_->rank = state_->group->getRank();
  state_->size = state_->group->getSize();
  state_->open_diagnostics();
}

ProcessGroup::~ProcessGroup() {
  state_->close();
}

int64_t ProcessGroup::rank() const {
  return state_->rank;
}

int64_t ProcessGroup::size() const {
  return state_->size;
}

at::Device ProcessGroup::device() const {
  return state_->device;
}

std::chrono::milliseconds ProcessGroup::timeout() const {
  return state_->timeout;
}

std::chrono::milliseconds ProcessGroup::startup_timeout() const {
  return state_->startup_timeout;
}

const Diagnostics& ProcessGroup::diagnostics() const {
  return state_->diagnostics;
}

std::string ProcessGroup::backend_name(at::DeviceType device_type) const {
  return state_->backend(device_type)->getBackendName();
}

c10::intrusive_ptr<c10d::Work> ProcessGroup::all_reduce_async(
    const at::Tensor& tensor,
    ReduceOp op) {
  check_contiguous(state_->tag(), tensor);
  check_reducible(state_->tag(), tensor, op);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors{as_real(tensor)};
  return state_->start(
      Collective::all_reduce(tensor, op),
      [&](c10d::Backend& backend) {
        c10d::AllreduceOptions options;
        options.reduceOp = to_c10d(op);
        options.timeout = state_->timeout;
        return backend.allreduce(tensors, options);
      });
}

c10::intrusive_ptr<c10d::Work> ProcessGroup::broadcast_async(
    const at::Tensor& tensor,
    int64_t root) {
  check_contiguous(state_->tag(), tensor);
  if (root < 0 || root >= state_->size) {
    throw ConfigError(fmt::format(
        "{} root: expected a rank below {}, got {}",
        state_->tag(),
        state_->size,
        root));
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors{as_real(tensor)};
  return state_->start(
      Collective::broadcast(tensor, root),
      [&](c10d::Backend& backend) {
        c10d::BroadcastOptions options;
        options.rootRank = root;
        options.timeout = state_->timeout;
        return backend.broadcast(tensors, options);
      });
}

void ProcessGroup::wait(
    const c10::intrusive_ptr<c10d::Work>& work,
    const std::string& what) {
  if (work) {
    state_->wait(*work, what);
  }
}

void ProcessGroup::confirm(
    const c10::intrusive_ptr<c10d::Work>& work,
    const std::string& what) {
  if (work) {
    state_->confirm(*work, what);
  }
}

void ProcessGroup::all_reduce(at::Tensor& tensor, ReduceOp op) {
  const auto dense = tensor.contiguous();
  confirm(all_reduce_async(dense, op), "all-reduce");
  if (!dense.is_same(tensor)) {
    const at::NoGradGuard no_grad;
    tensor.copy_(dense);
  }
}

void ProcessGroup::broadcast(at::Tensor& tensor, int64_t root) {
  const auto dense = tensor.contiguous();
  confirm(broadcast_async(dense, root), "broadcast");
  if (!dense.is_same(tensor)) {
    const at::NoGradGuard no_grad;
    tensor.copy_(dense);
  }
}

void ProcessGroup::barrier() {
  confirm(
      state_->start(
          Collective::barrier(),
          [&](c10d::Backend& backend) {
            c10d::BarrierOptions options;
            options.timeout = state_->timeout;
            return backend.barrier(options);
          }),
      "barrier");
}

const c10::intrusive_ptr<c10d::Store>& ProcessGroup::store() const {
  return state_->store;
}

const c10::intrusive_ptr<c10d::ProcessGroup>& ProcessGroup::c10d_group() const {
  return state_->group;
}

int64_t ProcessGroup::next_sequence() {
  return state_->sequence++;
}

int64_t ProcessGroup::num_collectives() const {
  return state_->log->recorder().last_sequence();
}

uint64_t ProcessGroup::collectives_hash() const {
  return state_->log->recorder().hash();
}

} // namespace tandem::comm
