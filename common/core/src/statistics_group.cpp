#include <tandem/core/statistics_group.h>

#include <utility>

namespace tandem {

namespace {

thread_local StatisticsGroup* current_group = nullptr;

} // namespace

StatisticsScope::StatisticsScope(StatisticsGroup* group)
    : outer_(std::exchange(current_group, group)) {}

StatisticsScope::~StatisticsScope() {
  current_group = outer_;
}

StatisticsGroup* StatisticsScope::current() {
  return current_group;
}

} // namespace tandem
