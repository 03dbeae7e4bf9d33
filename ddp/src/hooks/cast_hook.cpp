#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/named_tensors.h>
#include <tandem/ddp/comm_hooks.h>

#include "hooks/bucket_facts.h"

namespace tandem::ddp {

namespace {

/// Lets another hook reduce gradients in a narrower dtype.
class CastHook : public comm::CommHook {
 public:
  CastHook(std::string name, at::ScalarType dtype, CommHookPtr inner)
      : name_(std::move(name)),
        dtype_(dtype),
        is_wrapper_(inner != nullptr),
        inner_(inner ? std::move(inner) : all_reduce_hook()) {}

  std::string name() const override {
    return name_;
  }

  bool keeps_ranks_equal() const override {
    return inner_->keeps_ranks_equal();
  }

  std::string configuration() const override {
    return is_wrapper_ ? fmt::format("{}({})", name_, inner_->configuration())
                       : name_;
  }

  comm::TensorFuture run(comm::GradBucket& bucket) override {
    const at::NoGradGuard no_grad;
    count(bytes_of(bucket), 0);
    originals_.erase(bucket.index());
    if (is_compressible(bucket) &&
        c10::elementSize(bucket.dtype()) > c10::elementSize(dtype_)) {
      originals_[bucket.index()] = bucket.buffer();
      bucket.set_buffer(bucket.buffer().to(dtype_));
    }
    auto future = inner_->run(bucket);
    count_what_inner_sent();
    return future;
  }

  at::Tensor finish(comm::GradBucket& bucket, const at::Tensor& reduced)
      override {
    const at::NoGradGuard no_grad;
    auto result = inner_->finish(bucket, reduced);
    count_what_inner_sent();
    const auto found = originals_.find(bucket.index());
    if (found == originals_.end()) {
      return result;
    }
    const auto original = std::move(found->second);
    originals_.erase(found);
    bucket.set_buffer(original);
    // What has another size is for `collect` to complain of.
    return result.sizes() == original.sizes() ? original.copy_(result) : result;
  }

 protected:
  void check(const std::vector<NamedTensor>& parameters) override {
    inner_->attach_locally(shared_group(), parameters);
  }

 private:
  void count_what_inner_sent() {
    const int64_t sent_bytes = inner_->traffic().bytes_sent;
    count_sent(sent_bytes - std::exchange(counted_bytes_, sent_bytes));
  }

  std::string name_;
  at::ScalarType dtype_;
  bool is_wrapper_;
  CommHookPtr inner_;
  int64_t counted_bytes_ = 0;
  /// Of the buckets whose reduction has not ended, by index.
  std::map<size_t, at::Tensor> originals_;
};

} // namespace

CommHookPtr fp16_compress_hook(CommHookPtr inner) {
  return std::make_shared<CastHook>(
      "fp16_compress",
      at::kHalf,
      std::move(inner));
}

CommHookPtr bf16_compress_hook(CommHookPtr inner) {
  return std::make_shared<CastHook>(
      "bf16_compress",
      at::kBFloat16,
      std::move(inner));
}

} // namespace tandem::ddp
