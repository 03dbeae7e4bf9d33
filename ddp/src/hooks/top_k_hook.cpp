#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/process_group.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/errors.h>
#include <tandem/ddp/comm_hooks.h>

#include "hooks/bucket_facts.h"
#include "hooks/error_feedback.h"

namespace tandem::ddp {

namespace {

class TopKHook : public comm::CommHook {
 public:
  explicit TopKHook(const TopKOptions& options) : options_(options) {}

  std::string name() const override {
    return "top_k";
  }

  std::string configuration() const override {
    return fmt::format(
        "top_k(ratio {}, error feedback {})",
        options_.ratio(),
        options_.use_error_feedback() ? "on" : "off");
  }

  comm::TensorFuture run(comm::GradBucket& bucket) override;
  at::Tensor finish(comm::GradBucket& bucket, const at::Tensor& reduced)
      override;

 private:
  /// Elements of a bucket that each rank sends.
  int64_t num_sent(int64_t num_elems) const;
  /// All ranks' rows, of which this one has filled only its own; the sum of
  /// bytes and zeros is the bytes.
  at::Tensor packed(const at::Tensor& buffer); // [ranks, bytes]

  TopKOptions options_;
  ErrorFeedback feedback_;
};

bool has_elements_to_choose(const comm::GradBucket& bucket) {
  return is_compressible(bucket) && bucket.buffer().numel() > 0;
}

comm::TensorFuture TopKHook::run(comm::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  const int64_t bytes = bytes_of(bucket);
  if (!has_elements_to_choose(bucket)) {
    count(bytes, bytes);
    return comm::all_reduce_future(group(), bucket.buffer());
  }
  if (options_.use_error_feedback()) {
    feedback_.add_to(bucket);
  }
  const auto rows = packed(bucket.buffer());
  count(bytes, static_cast<int64_t>(rows.nbytes()));
  return comm::all_reduce_future(group(), rows, comm::ReduceOp::kSum);
}

int64_t TopKHook::num_sent(int64_t num_elems) const {
  const auto wanted = static_cast<int64_t>(
      std::ceil(options_.ratio() * static_cast<double>(num_elems)));
  return std::clamp<int64_t>(wanted, 1, num_elems);
}

at::Tensor TopKHook::packed(const at::Tensor& buffer) {
  const auto places = std::get<1>(buffer.abs().topk(num_sent(buffer.numel())));
  const auto row = at::cat(
      {places.to(at::kInt).view(at::kByte),
       buffer.index_select(0, places).view(at::kByte)});
  const auto rows = at::zeros({group().size(), row.numel()}, row.options());
  rows.select(0, group().rank()).copy_(row);
  return rows;
}

at::Tensor TopKHook::finish(
    comm::GradBucket& bucket,
    const at::Tensor& reduced) {
  if (!has_elements_to_choose(bucket)) {
    return reduced;
  }
  const at::NoGradGuard no_grad;
  const auto& buffer = bucket.buffer();
  const int64_t place_bytes =
      num_sent(buffer.numel()) * static_cast<int64_t>(sizeof(int32_t));
  const int64_t value_bytes = reduced.size(1) - place_bytes;
  auto mean = at::zeros_like(buffer);
  // Rank by rank, within which places differ: sums in one order everywhere.
  for (int64_t rank = 0; rank < group().size(); ++rank) {
    const auto row = reduced.select(0, rank);
    // Rows need not begin where wider types may.
    const auto places =
        row.narrow(0, 0, place_bytes).clone().view(at::kInt).to(at::kLong);
    const auto values = row.narrow(0, place_bytes, value_bytes)
                            .clone()
                            .view(buffer.scalar_type());
    mean.index_add_(0, places, values / group().size());
    if (rank == group().rank() && options_.use_error_feedback()) {
      feedback_.subtract(
          bucket,
          at::zeros_like(buffer).index_copy_(0, places, values));
    }
  }
  return buffer.copy_(mean);
}

} // namespace

CommHookPtr top_k_hook(const TopKOptions& options) {
  if (!(options.ratio() > 0 && options.ratio() <= 1)) {
    throw ConfigError(fmt::format(
        "[ddp] top_k ratio: expected above 0 and at most 1, got {}",
        options.ratio()));
  }
  return std::make_shared<TopKHook>(options);
}

} // namespace tandem::ddp
