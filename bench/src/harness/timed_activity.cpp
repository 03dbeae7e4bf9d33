#include "harness/timed_activity.h"

#include <c10/core/GradMode.h>

#include "harness/learner.h"
#include "workloads/task.h"

namespace tandem::bench {

namespace {

using Batches = std::vector<Learner::Batch>;

Batches make_own_batches(
    const WorkerScope& worker,
    const BenchRecipe& recipe,
    at::ScalarType dtype) {
  const auto rows = own_rows(worker, recipe.batch);
  Batches batches;
  for (const auto& whole : make_whole_batches(recipe, dtype)) {
    batches.emplace_back(
        whole.data.narrow(0, rows.begin, rows.count).clone(),
        whole.target.narrow(0, rows.begin, rows.count).clone());
  }
  return batches;
}

const Learner::Batch& batch_of(const Batches& batches, int64_t step) {
  return batches[static_cast<size_t>(step) % batches.size()];
}

/// What the activities share.
class LearnerActivity : public TimedActivity {
 public:
  explicit LearnerActivity(Learner learner) : learner_(std::move(learner)) {}

  ClassifierImpl& net() override {
    return learner_.net();
  }
  Counters counters() const override {
    return learner_.counters();
  }
  std::optional<CommunicationTimes> communication() const override {
    return learner_.communication();
  }
  std::optional<comm::HookTraffic> hook_traffic() const override {
    return learner_.hook_traffic();
  }

 protected:
  Learner& learner() {
    return learner_;
  }

 private:
  Learner learner_;
};

class Train final : public LearnerActivity {
 public:
  Train(Learner learner, Batches batches, LossPlace loss_place)
      : LearnerActivity(std::move(learner)),
        batches_(std::move(batches)),
        loss_place_(loss_place) {}

  void run(int64_t step) override {
    learner().train_step(batch_of(batches_, step), loss_place_);
  }
  std::vector<NamedTensor> outcome() override {
    return unique_parameters(net());
  }

 private:
  Batches batches_;
  LossPlace loss_place_;
};

class Evaluate final : public LearnerActivity {
 public:
  Evaluate(Learner learner, Batches batches)
      : LearnerActivity(std::move(learner)), batches_(std::move(batches)) {
    this->learner().eval();
  }

  void run(int64_t step) override {
    const c10::NoGradGuard no_grad;
    output_ = learner().forward(batch_of(batches_, step).data);
  }
  std::vector<NamedTensor> outcome() override {
    return {{"output", output_}};
  }

 private:
  Batches batches_;
  at::Tensor output_;
};

class Refresh final : public LearnerActivity {
 public:
  using LearnerActivity::LearnerActivity;

  void run(int64_t) override {
    learner().data_parallel()->refresh();
  }
  std::vector<NamedTensor> outcome() override {
    const auto wrapper = learner().data_parallel();
    std::vector<NamedTensor> all;
    for (int64_t index = 1; index < wrapper->num_replicas(); ++index) {
      for (auto& named :
           unique_parameters(*wrapper->replica(static_cast<size_t>(index)))) {
        all.push_back(std::move(named));
      }
    }
    return all;
  }
};

/// Copies every parameter by itself to every further device.
class CopyEach final : public LearnerActivity {
 public:
  CopyEach(Learner learner, const std::vector<at::Device>& devices)
      : LearnerActivity(std::move(learner)),
        parameters_(unique_parameters(net())) {
    for (size_t index = 1; index < devices.size(); ++index) {
      for (const auto& [name, parameter] : parameters_) {
        copies_.push_back(
            {name,
             parameter.detach().to(
                 devices[index],
                 parameter.scalar_type(),
                 /*non_blocking=*/false,
                 /*copy=*/true)});
      }
    }
  }

  void run(int64_t) override {
    const c10::NoGradGuard no_grad;
    for (size_t i = 0; i < copies_.size(); ++i) {
      copies_[i].tensor.copy_(
          parameters_[i % parameters_.size()].tensor,
          /*non_blocking=*/true);
    }
  }
  std::vector<NamedTensor> outcome() override {
    return copies_;
  }

 private:
  std::vector<NamedTensor> parameters_;
  /// Those of the second device, then those of the third, ...
  std::vector<NamedTensor> copies_;
};

} // namespace

RowRange own_rows(const WorkerScope& worker, int64_t rows) {
  const int64_t count = rows / worker.num_processes();
  return {worker.rank() * count, count};
}

std::vector<torch::data::Example<>> make_whole_batches(
    const BenchRecipe& recipe,
    at::ScalarType dtype) {
  std::vector<torch::data::Example<>> batches;
  batches.reserve(kNumBatches);
  for (uint64_t index = 0; index < kNumBatches; ++index) {
    batches.push_back(make_batch(
        recipe.workload,
        recipe.batch,
        recipe.seed * kNumBatches + index,
        dtype));
  }
  return batches;
}

std::unique_ptr<TimedActivity> make_timed_activity(
    const WorkerScope& worker,
    const Mode& mode,
    const BenchRecipe& recipe,
    at::ScalarType dtype) {
  auto learner = mode.strategy == TimedStrategy::kBare
      ? Learner(recipe, worker.device(), dtype)
      : Learner(recipe, worker, mode, dtype);
  switch (mode.activity) {
    case Activity::kTrain:
    case Activity::kMeanLoss:
      return std::make_unique<Train>(
          std::move(learner),
          make_own_batches(worker, recipe, dtype),
          mode.activity == Activity::kTrain ? LossPlace::kOutside
                                            : LossPlace::kInReplica);
    case Activity::kEvaluate:
      return std::make_unique<Evaluate>(
          std::move(learner),
          make_own_batches(worker, recipe, dtype));
    case Activity::kRefresh:
      return std::make_unique<Refresh>(std::move(learner));
    case Activity::kCopyEach:
      break;
  }
  return std::make_unique<CopyEach>(std::move(learner), worker.devices());
}

} // namespace tandem::bench
