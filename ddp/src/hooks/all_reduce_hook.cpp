#include <cstdint>
#include <memory>
#include <string>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/ddp/comm_hooks.h>

#include "hooks/bucket_facts.h"

namespace tandem::ddp {

namespace {

class AllReduceHook : public comm::CommHook {
 public:
  std::string name() const override {
    return "allreduce";
  }

  comm::TensorFuture run(comm::GradBucket& bucket) override {
    const int64_t bytes = bytes_of(bucket);
    count(bytes, bytes);
    return comm::all_reduce_future(group(), bucket.buffer());
  }
};

} // namespace

CommHookPtr all_reduce_hook() {
  return std::make_shared<AllReduceHook>();
}

} // namespace tandem::ddp
