#include "sim_backend.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "tensor_parts.h"

namespace tandem::sim {

namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

constexpr const char* kBackendName = "sim";

std::vector<at::Tensor> lasting_cpu_views_of(
    const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> views;
  views.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    views.push_back(lasting_cpu_view_of(tensor));
  }
  return views;
}

/// The CPU's collective, whose results are the device's tensors.
class SimWork final : public c10d::Work {
 public:
  SimWork(WorkPtr cpu, std::vector<at::Tensor> tensors)
      : cpu_(std::move(cpu)), tensors_(std::move(tensors)) {}

  bool isCompleted() override {
    return cpu_->isCompleted();
  }
  bool isSuccess() const override {
    return cpu_->isSuccess();
  }
  std::exception_ptr exception() const override {
    return cpu_->exception();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    return cpu_->wait(timeout);
  }
  void synchronize() override {
    cpu_->synchronize();
  }
  void abort() override {
    cpu_->abort();
  }
  std::vector<at::Tensor> result() override {
    return tensors_;
  }
  FuturePtr getFuture() override {
    return cpu_->getFuture()->then(
        [tensors = tensors_](c10::ivalue::Future& done) {
          done.value(); // throws if the collective failed
          return c10::IValue(tensors);
        },
        c10::ListType::ofTensors());
  }

 private:
  WorkPtr cpu_;
  std::vector<at::Tensor> tensors_;
};

/// Overrides what `comm::ProcessGroup` and `c10d::Reducer` call; the rest of
/// `c10d::Backend` has other names in other LibTorch versions.
class SimBackend final : public c10d::Backend {
 public:
  explicit SimBackend(c10::intrusive_ptr<c10d::Backend> cpu)
      : c10d::Backend(cpu->getRank(), cpu->getSize()), cpu_(std::move(cpu)) {}

  const std::string getBackendName() const override {
    return kBackendName;
  }

  WorkPtr allreduce(
      std::vector<at::Tensor>& tensors,
      const c10d::AllreduceOptions& options) override {
    auto views = lasting_cpu_views_of(tensors);
    return c10::make_intrusive<SimWork>(
        cpu_->allreduce(views, options),
        tensors);
  }

  WorkPtr broadcast(
      std::vector<at::Tensor>& tensors,
      const c10d::BroadcastOptions& options) override {
    auto views = lasting_cpu_views_of(tensors);
    return c10::make_intrusive<SimWork>(
        cpu_->broadcast(views, options),
        tensors);
  }

  WorkPtr allgather(
      std::vector<std::vector<at::Tensor>>& outputs,
      std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions& options) override {
    std::vector<std::vector<at::Tensor>> output_views;
    std::vector<at::Tensor> results;
    for (const auto& list : outputs) {
      output_views.push_back(lasting_cpu_views_of(list));
      results.insert(results.end(), list.begin(), list.end());
    }
    auto input_views = lasting_cpu_views_of(inputs);
    return c10::make_intrusive<SimWork>(
        cpu_->allgather(output_views, input_views, options),
        std::move(results));
  }

  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return cpu_->barrier(options);
  }

  void setTimeout(std::chrono::milliseconds timeout) override {
    cpu_->setTimeout(timeout);
  }

  void abort() override {
    cpu_->abort();
  }

 private:
  c10::intrusive_ptr<c10d::Backend> cpu_;
};

} // namespace

comm::BackendFactory sim_backend() {
  return {kBackendName, [](const comm::BackendRequest& request) {
            // The group's CPU tensors have a backend in the same store.
            auto own = request;
            own.store = c10::make_intrusive<c10d::PrefixStore>(
                kBackendName,
                request.store);
            return c10::make_intrusive<SimBackend>(
                comm::backend_factory(at::kCPU).make(own));
          }};
}

} // namespace tandem::sim
