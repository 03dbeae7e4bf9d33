#include "sim_backend.h"

#include <map>
#include <mutex>

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "runtime.h"
#include "tensor_parts.h"
#include "thread_devices.h"

namespace tandem::sim {

namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;
using EventPtr = std::shared_ptr<c10::Event>;

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

/// The tensors are held until the collective has ended, so that they need no
/// wait before they go.
void add_collective(
    Hazards& hazards,
    const c10::Stream& stream,
    const std::string& name,
    const std::vector<at::Tensor>& read,
    const std::vector<at::Tensor>& written) {
  BlockUses uses;
  for (const auto& tensor : read) {
    append_use(uses, tensor, UseKind::kRead);
  }
  for (const auto& tensor : written) {
    append_use(uses, tensor, UseKind::kWrite);
  }
  hazards.add_work(stream, name, uses);
  for (const auto& use : uses) {
    hazards.record_stream(*use.log, stream);
  }
}

/// The CPU's collective, whose results are the device's tensors. As with NCCL,
/// it runs on a stream of its own, for which `wait` lets the current one wait.
class SimWork final : public c10d::Work {
 public:
  SimWork(WorkPtr cpu, std::vector<at::Tensor> tensors, EventPtr end)
      : cpu_(std::move(cpu)),
        tensors_(std::move(tensors)),
        end_(std::move(end)) {}

  bool isCompleted() override {
    return cpu_->isCompleted() && end_->query();
  }
  bool isSuccess() const override {
    return cpu_->isSuccess();
  }
  std::exception_ptr exception() const override {
    return cpu_->exception();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    const bool done = cpu_->wait(timeout);
    block_current_stream();
    return done;
  }
  void synchronize() override {
    cpu_->synchronize();
    block_current_stream();
  }
  void abort() override {
    cpu_->abort();
  }
  std::vector<at::Tensor> result() override {
    return tensors_;
  }
  FuturePtr getFuture() override {
    return cpu_->getFuture()->then(
        [tensors = tensors_, end = end_](c10::ivalue::Future& done) {
          done.value(); // throws if the collective failed
          end->synchronize();
          return c10::IValue(tensors);
        },
        c10::ListType::ofTensors());
  }

 private:
  void block_current_stream() {
    end_->block(current_stream_of(end_->device_index()));
  }

  WorkPtr cpu_;
  std::vector<at::Tensor> tensors_;
  EventPtr end_;
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
    auto end = run_on_own_stream("c10d::allreduce_", {}, tensors);
    auto views = lasting_cpu_views_of(tensors);
    return c10::make_intrusive<SimWork>(
        cpu_->allreduce(views, options),
        tensors,
        std::move(end));
  }

  WorkPtr broadcast(
      std::vector<at::Tensor>& tensors,
      const c10d::BroadcastOptions& options) override {
    auto end = run_on_own_stream("c10d::broadcast_", {}, tensors);
    auto views = lasting_cpu_views_of(tensors);
    return c10::make_intrusive<SimWork>(
        cpu_->broadcast(views, options),
        tensors,
        std::move(end));
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
    auto end = run_on_own_stream("c10d::allgather_", inputs, results);
    auto input_views = lasting_cpu_views_of(inputs);
    return c10::make_intrusive<SimWork>(
        cpu_->allgather(output_views, input_views, options),
        std::move(results),
        std::move(end));
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
  /// Lets this backend's stream on the tensors' device do a collective after
  /// the work on the current one. Returns its end.
  EventPtr run_on_own_stream(
      const std::string& name,
      const std::vector<at::Tensor>& read,
      const std::vector<at::Tensor>& written) {
    const auto device = written.at(0).device();
    const auto own = stream_on(device);
    c10::Event begin(at::kPrivateUse1);
    begin.record(current_stream_of(device.index()));
    begin.block(own);
    if (auto* const hazards = active_hazards()) {
      add_collective(*hazards, own, name, read, written);
    }
    auto end = std::make_shared<c10::Event>(at::kPrivateUse1);
    end->record(own);
    return end;
  }

  c10::Stream stream_on(at::Device device) {
    const std::lock_guard<std::mutex> lock(streams_mutex_);
    const auto known = streams_.find(device.index());
    if (known != streams_.end()) {
      return known->second;
    }
    const c10::impl::VirtualGuardImpl guard(at::kPrivateUse1);
    return streams_.emplace(device.index(), guard.getNewStream(device))
        .first->second;
  }

  c10::intrusive_ptr<c10d::Backend> cpu_;
  std::mutex streams_mutex_;
  std::map<at::DeviceIndex, c10::Stream> streams_;
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
