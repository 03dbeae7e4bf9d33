#include <tandem/testing/faulty_backend.h>

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace tandem::testing {

namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

constexpr const char* kFaultyName = "faulty";

/// A collective that has done nothing and says that it is done.
class DroppedWork final : public c10d::Work {
 public:
  explicit DroppedWork(std::vector<at::Tensor> tensors)
      : tensors_(std::move(tensors)) {
    finish();
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(tensors_));
    return future;
  }

 private:
  std::vector<at::Tensor> tensors_;
};

/// Overrides what `comm::ProcessGroup` and `c10d::Reducer` call; the rest of
/// `c10d::Backend` has other names in other LibTorch versions.
class FaultyBackend final : public c10d::Backend {
 public:
  FaultyBackend(c10::intrusive_ptr<c10d::Backend> real, Fault fault)
      : c10d::Backend(real->getRank(), real->getSize()),
        real_(std::move(real)),
        fault_(fault) {}

  const std::string getBackendName() const override {
    return kFaultyName;
  }

  WorkPtr allreduce(
      std::vector<at::Tensor>& tensors,
      const c10d::AllreduceOptions& options) override {
    const auto index = num_all_reduces_++;
    if (fault_.kind == Fault::Kind::kForgetsDivision) {
      // All operations commute with a positive factor.
      const at::NoGradGuard no_grad;
      for (auto& tensor : tensors) {
        tensor.mul_(getSize());
      }
    } else if (index == fault_.dropped_index) {
      return c10::make_intrusive<DroppedWork>(tensors);
    }
    return real_->allreduce(tensors, options);
  }

  WorkPtr broadcast(
      std::vector<at::Tensor>& tensors,
      const c10d::BroadcastOptions& options) override {
    return real_->broadcast(tensors, options);
  }

  WorkPtr allgather(
      std::vector<std::vector<at::Tensor>>& outputs,
      std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions& options) override {
    return real_->allgather(outputs, inputs, options);
  }

  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return real_->barrier(options);
  }

  void abort() override {
    real_->abort();
  }

 private:
  c10::intrusive_ptr<c10d::Backend> real_;
  Fault fault_;
  int64_t num_all_reduces_ = 0;
};

} // namespace

comm::BackendFactory faulty_backend(
    const comm::BackendFactory& real,
    Fault fault) {
  return {kFaultyName, [real, fault](const comm::BackendRequest& request) {
            return c10::make_intrusive<FaultyBackend>(
                real.make(request),
                fault);
          }};
}

} // namespace tandem::testing
