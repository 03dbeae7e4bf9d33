#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/errors.h>
#include <tandem/ddp/comm_hooks.h>

#include "hooks/bucket_facts.h"

namespace tandem::ddp {

namespace {

class PostLocalSGDHook : public comm::CommHook {
 public:
  explicit PostLocalSGDHook(const PostLocalSGDOptions& options)
      : options_(options) {
    if (options.start_step() < 0) {
      throw ConfigError(fmt::format(
          "[ddp] communication hook 'post_local_sgd', start_step: expected at "
          "least 0, got {}",
          options.start_step()));
    }
  }

  std::string name() const override {
    return "post_local_sgd";
  }
  bool keeps_ranks_equal() const override {
    return false;
  }

  std::string configuration() const override {
    return fmt::format(
        "{}(start_step={}, subgroup={})",
        name(),
        options_.start_step(),
        options_.subgroup() != nullptr);
  }

  comm::TensorFuture run(comm::GradBucket& bucket) override {
    auto* const ranks = step_ < options_.start_step()
        ? shared_group().get()
        : options_.subgroup().get();
    if (bucket.is_last()) {
      ++step_;
    }
    const int64_t bytes = bytes_of(bucket);
    count(bytes, ranks == nullptr ? 0 : bytes);
    return ranks == nullptr ? comm::ready_future(bucket.buffer())
                            : comm::all_reduce_future(*ranks, bucket.buffer());
  }

 private:
  PostLocalSGDOptions options_;
  /// Reductions that have begun.
  int64_t step_ = 0;
};

} // namespace

CommHookPtr post_local_sgd_hook(const PostLocalSGDOptions& options) {
  return std::make_shared<PostLocalSGDHook>(options);
}

} // namespace tandem::ddp
