#include <tandem/core/bucket_plan.h>

#include <algorithm>
#include <map>

namespace tandem {

namespace {

struct OpenBucket {
  std::vector<size_t> items;
  int64_t bytes = 0;
  size_t next_cap = 0;
};

} // namespace

std::vector<std::vector<size_t>> plan_buckets(
    const std::vector<BucketItem>& items,
    const std::vector<int64_t>& caps_bytes) {
  std::vector<std::vector<size_t>> buckets;
  std::map<int64_t, OpenBucket> open_by_type;
  for (size_t index = 0; index < items.size(); ++index) {
    auto& open = open_by_type[items[index].type];
    open.items.push_back(index);
    open.bytes += items[index].bytes;
    if (open.bytes >= caps_bytes[open.next_cap]) {
      buckets.push_back(std::move(open.items));
      open.items.clear();
      open.bytes = 0;
      open.next_cap = std::min(open.next_cap + 1, caps_bytes.size() - 1);
    }
  }
  for (auto& [type, open] : open_by_type) {
    if (!open.items.empty()) {
      buckets.push_back(std::move(open.items));
    }
  }
  std::sort(
      buckets.begin(),
      buckets.end(),
      [](const auto& left, const auto& right) {
        return left.front() < right.front();
      });
  return buckets;
}

} // namespace tandem
