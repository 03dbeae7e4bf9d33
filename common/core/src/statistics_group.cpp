#include <tandem/core/statistics_group.h>

#include <utility>

#include <tandem/core/errors.h>

namespace tandem {

namespace {

thread_local StatisticsGroup* current_group = nullptr;

class NoRecomputation final : public StatisticsGroup {
 public:
  BatchMoments combine(const torch::nn::Module&, const BatchMoments&) override {
    throw ConfigError(
        "SyncBatchNorm: recomputation in backward: expected a wrapper whose "
        "replicas can meet again, got one whose cannot. Keep the layer's "
        "activations, or use DistributedDataParallel");
  }
  bool is_recomputation() const override {
    return true;
  }
};

} // namespace

std::shared_ptr<StatisticsGroup> StatisticsGroup::for_recomputation() {
  return std::make_shared<NoRecomputation>();
}

StatisticsScope::StatisticsScope(StatisticsGroup* group)
    : outer_(std::exchange(current_group, group)) {}

StatisticsScope::~StatisticsScope() {
  current_group = outer_;
}

StatisticsGroup* StatisticsScope::current() {
  return current_group;
}

} // namespace tandem
