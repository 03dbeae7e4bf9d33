#include <tandem/comm/comm.h>

#include <mutex>
#include <utility>

#include <tandem/core/errors.h>

#include "default_group.h"

namespace tandem::comm {

namespace {

std::mutex default_mutex;
std::shared_ptr<ProcessGroup> process_default;
thread_local std::shared_ptr<ProcessGroup> thread_default;

std::shared_ptr<ProcessGroup> current_group() {
  if (thread_default) {
    return thread_default;
  }
  const std::lock_guard<std::mutex> lock(default_mutex);
  return process_default;
}

} // namespace

bool set_process_default(std::shared_ptr<ProcessGroup> group) {
  const std::lock_guard<std::mutex> lock(default_mutex);
  if (process_default) {
    return false;
  }
  process_default = std::move(group);
  return true;
}

bool has_process_default() {
  const std::lock_guard<std::mutex> lock(default_mutex);
  return process_default != nullptr;
}

void destroy_process_group() {
  std::shared_ptr<ProcessGroup> dropped;
  const std::lock_guard<std::mutex> lock(default_mutex);
  dropped.swap(process_default);
}

bool is_initialized() {
  return current_group() != nullptr;
}

std::shared_ptr<ProcessGroup> default_group() {
  auto group = current_group();
  if (!group) {
    throw ConfigError(
        "process group: expected a default one, got none. Call "
        "tandem::comm::init_process_group() first");
  }
  return group;
}

ScopedGroup::ScopedGroup(std::shared_ptr<ProcessGroup> group)
    : previous_(std::exchange(thread_default, std::move(group))) {}

ScopedGroup::~ScopedGroup() {
  thread_default = std::move(previous_);
}

int64_t rank() {
  const auto group = current_group();
  return group ? group->rank() : 0;
}

int64_t world_size() {
  const auto group = current_group();
  return group ? group->size() : 1;
}

bool is_main() {
  return rank() == 0;
}

void all_reduce(at::Tensor& tensor, ReduceOp op) {
  default_group()->all_reduce(tensor, op);
}

void broadcast(at::Tensor& tensor, int64_t root) {
  default_group()->broadcast(tensor, root);
}

void barrier() {
  default_group()->barrier();
}

} // namespace tandem::comm
