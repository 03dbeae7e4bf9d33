#include <cstdint>
#include <map>
#include <mutex>

#include <c10/core/impl/alloc_cpu.h>

#include "allocators.h"

namespace tandem::sim {

namespace {

/// The pinned ranges, by address. **Threads**: any.
class PinnedRanges {
 public:
  static PinnedRanges& instance() {
    static auto* const ranges = new PinnedRanges;
    return *ranges;
  }

  void add(const void* begin, size_t num_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    end_of_[address(begin)] = address(begin) + num_bytes;
  }

  void remove(const void* begin) {
    const std::lock_guard<std::mutex> lock(mutex_);
    end_of_.erase(address(begin));
  }

  bool contain(const void* pointer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto next = end_of_.upper_bound(address(pointer));
    return next != end_of_.begin() &&
        address(pointer) < std::prev(next)->second;
  }

 private:
  static uintptr_t address(const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
  }

  std::mutex mutex_;
  std::map<uintptr_t, uintptr_t> end_of_;
};

void free_pinned(void* data) {
  PinnedRanges::instance().remove(data);
  c10::free_cpu(data);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    if (num_bytes == 0) {
      return {nullptr, nullptr, &free_pinned, at::kCPU};
    }
    void* const data = c10::alloc_cpu(num_bytes);
    PinnedRanges::instance().add(data, num_bytes);
    return {data, data, &free_pinned, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_pinned;
  }
  void copy_data(void* destination, const void* source, size_t num_bytes)
      const override {
    default_copy_data(destination, source, num_bytes);
  }
};

} // namespace

c10::Allocator& pinned_allocator() {
  static auto* const allocator = new PinnedAllocator;
  return *allocator;
}

bool is_pinned(const void* pointer) {
  return PinnedRanges::instance().contain(pointer);
}

} // namespace tandem::sim
