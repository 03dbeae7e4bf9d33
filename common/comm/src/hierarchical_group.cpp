#include <tandem/comm/hierarchical_group.h>

#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>
#include <tandem/comm/sub_group.h>
#include <tandem/core/errors.h>

namespace tandem::comm {

namespace {

void check_block_size(const ProcessGroup& world, int64_t block_size) {
  if (block_size < 1 || world.size() % block_size != 0) {
    throw ConfigError(fmt::format(
        "{} block_size: expected a divisor of the world size, which is {}, got "
        "{}",
        rank_tag("comm", world.rank(), world.size()),
        world.size(),
        block_size));
  }
}

} // namespace

HierarchicalGroup::HierarchicalGroup(ProcessGroup& world, int64_t block_size) {
  check_block_size(world, block_size);
  std::vector<int64_t> firsts;
  for (int64_t first = 0; first < world.size(); first += block_size) {
    firsts.push_back(first);
    std::vector<int64_t> members(static_cast<size_t>(block_size));
    std::iota(members.begin(), members.end(), first);
    if (auto group = new_group(world, members)) {
      block_ = std::move(group);
    }
  }
  leaders_ = new_group(world, firsts);
}

void HierarchicalGroup::all_reduce(at::Tensor& tensor, ReduceOp op) {
  // Blocks are of one size, so that a mean of their means is the mean.
  block_->all_reduce(tensor, op);
  if (leaders_) {
    leaders_->all_reduce(tensor, op);
  }
  block_->broadcast(tensor);
}

} // namespace tandem::comm
