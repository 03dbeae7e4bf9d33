#include "overlapped_step.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tandem::detail {

namespace {

/// Leaves an optimizer's groups only parameters of choice, until destroyed.
class OnlyParameters {
 public:
  template <typename Choice>
  OnlyParameters(torch::optim::Optimizer& optimizer, const Choice& choice)
      : optimizer_(optimizer) {
    for (auto& param_group : optimizer.param_groups()) {
      std::vector<at::Tensor> chosen;
      std::copy_if(
          param_group.params().begin(),
          param_group.params().end(),
          std::back_inserter(chosen),
          choice);
      all_.push_back(std::exchange(param_group.params(), std::move(chosen)));
    }
  }
  ~OnlyParameters() {
    for (size_t i = 0; i < all_.size(); ++i) {
      optimizer_.param_groups()[i].params() = std::move(all_[i]);
    }
  }
  OnlyParameters(const OnlyParameters&) = delete;
  OnlyParameters& operator=(const OnlyParameters&) = delete;

 private:
  torch::optim::Optimizer& optimizer_;
  std::vector<std::vector<at::Tensor>> all_;
};

} // namespace

OverlappedStep::OverlappedStep(
    comm::ProcessGroup& group,
    torch::optim::Optimizer& local,
    const std::vector<std::vector<at::Tensor>>& shards,
    int64_t chunk_bytes)
    : group_(group),
      local_(local),
      shards_(shards),
      chunk_bytes_(chunk_bytes),
      chunk_(shards.size()) {
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    for (const auto& parameter : shards[rank]) {
      owners_[parameter.unsafeGetTensorImpl()] = rank;
    }
  }
}

bool OverlappedStep::begin(const at::Tensor& parameter) {
  const auto owner = owners_.find(parameter.unsafeGetTensorImpl());
  if (owner == owners_.end()) {
    return true;
  }
  if (!begun_.insert(parameter.unsafeGetTensorImpl()).second) {
    return false;
  }
  if (static_cast<int64_t>(owner->second) == group_.rank()) {
    const OnlyParameters only(local_, [&](const at::Tensor& other) {
      return other.is_same(parameter);
    });
    local_.step();
  }
  chunk_[owner->second].push_back(parameter);
  chunk_size_bytes_ += static_cast<int64_t>(parameter.nbytes());
  if (chunk_size_bytes_ >= chunk_bytes_) {
    send_chunk();
  }
  return true;
}

void OverlappedStep::finish() {
  const auto is_left = [this](const at::Tensor& parameter) {
    return begun_.count(parameter.unsafeGetTensorImpl()) == 0;
  };
  {
    const OnlyParameters only(local_, is_left);
    local_.step();
  }
  for (size_t rank = 0; rank < shards_.size(); ++rank) {
    std::copy_if(
        shards_[rank].begin(),
        shards_[rank].end(),
        std::back_inserter(chunk_[rank]),
        is_left);
  }
  send_chunk();
  for (const auto& broadcast : sent_) {
    broadcast->finish(group_);
  }
}

void OverlappedStep::send_chunk() {
  sent_.push_back(std::make_unique<ShardBroadcast>(chunk_));
  sent_.back()->start(group_);
  chunk_.assign(chunk_.size(), {});
  chunk_size_bytes_ = 0;
}

} // namespace tandem::detail
