#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <tandem/core/errors.h>

#include "collective_arguments.h"
#include "process_group_state.h"

namespace tandem::comm {

ProcessGroup::ProcessGroup(
    c10::intrusive_ptr<c10d::ProcessGroup> group,
    c10::intrusive_ptr<c10d::Store> store,
    at::Device device,
    std::chrono::milliseconds timeout,
    std::chrono::milliseconds startup_timeout)
    : state_(std::make_unique<State>(State{
          .group = std::move(group),
          .store = std::move(store),
          .device = device,
          .timeout = timeout,
          .startup_timeout = startup_timeout,
          .rank = 0,
          .size = 1,
          .in_flight = {},
          .failure = {}})) {
  state_->rank = state_->group->getRank();
  state_->size = state_->group->getSize();
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
      "all-reduce",
      tensor.device().type(),
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
      "broadcast",
      tensor.device().type(),
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
  if (!work) {
    return;
  }
  try {
    work->wait();
  } catch (...) {
    state_->fail(what, message_of(std::current_exception()));
  }
}

void ProcessGroup::confirm(
    const c10::intrusive_ptr<c10d::Work>& work,
    const std::string& what) {
  wait(work, what);
  if (work) {
    state_->await_completion(*work, what);
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
          "barrier",
          at::kCPU,
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

} // namespace tandem::comm
