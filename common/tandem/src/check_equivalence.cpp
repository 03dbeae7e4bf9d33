#include <tandem/check_equivalence.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/sgd.h>

#include <tandem/core/errors.h>
#include <tandem/core/named_tensors.h>
#include <tandem/core/tensor_difference.h>

namespace tandem::detail {

namespace {

/// One comparison, step by step.
class Comparison {
 public:
  Comparison(const EquivalenceRun& run, const EquivalenceOptions& options)
      : run_(run),
        options_(options),
        reference_parameters_(unique_parameters(run.reference)),
        candidate_parameters_(unique_parameters(*run.candidate.module())),
        reference_optimizer_(tensors_of(reference_parameters_), sgd()),
        candidate_optimizer_(tensors_of(candidate_parameters_), sgd()) {}

  EquivalenceReport run() {
    for (int64_t step = 0; step < options_.steps(); ++step) {
      run_step(step);
    }
    return report_;
  }

 private:
  static std::vector<at::Tensor> tensors_of(
      const std::vector<NamedTensor>& named) {
    std::vector<at::Tensor> tensors;
    tensors.reserve(named.size());
    for (const auto& [name, tensor] : named) {
      tensors.push_back(tensor);
    }
    return tensors;
  }

  torch::optim::SGDOptions sgd() const {
    return torch::optim::SGDOptions(options_.learning_rate()).momentum(0.9);
  }

  void run_step(int64_t step) {
    const auto batch = options_.batches()(step);
    disturb(run_.reference, step, 0);
    disturb(*run_.candidate.module(), step, run_.candidate.rank());
    reference_optimizer_.zero_grad();
    candidate_optimizer_.zero_grad();

    const auto expected = run_.reference_forward(batch.data);
    const auto device = run_.candidate.device();
    const auto actual = run_.candidate_forward(share(batch.data).to(device));
    note(step, "output", share(expected), actual);

    options_.criterion()(expected, batch.target).backward();
    options_.criterion()(actual, share(batch.target).to(device)).backward();
    for (size_t i = 0; i < reference_parameters_.size(); ++i) {
      const auto& [name, parameter] = reference_parameters_[i];
      note(
          step,
          fmt::format("gradient of '{}'", name),
          parameter.grad(),
          candidate_parameters_.at(i).tensor.grad());
    }
    reference_optimizer_.step();
    candidate_optimizer_.step();
    for (size_t i = 0; i < reference_parameters_.size(); ++i) {
      const auto& [name, parameter] = reference_parameters_[i];
      note(
          step,
          fmt::format("parameter '{}'", name),
          parameter,
          candidate_parameters_.at(i).tensor);
    }
  }

  void disturb(torch::nn::Module& module, int64_t step, int64_t rank) {
    if (options_.disturb()) {
      options_.disturb()(module, step, rank);
    }
  }

  /// This rank's rows of a whole batch.
  at::Tensor share(const at::Tensor& whole) const {
    const int64_t rows = whole.size(0);
    const int64_t world_size = run_.candidate.world_size();
    if (rows % world_size != 0) {
      throw ConfigError(fmt::format(
          "check_equivalence: rows of a batch: expected a multiple of the {} "
          "ranks, got {}",
          world_size,
          rows));
    }
    const int64_t share = rows / world_size;
    return whole.narrow(0, run_.candidate.rank() * share, share);
  }

  void note(
      int64_t step,
      const std::string& subject,
      const at::Tensor& expected,
      const at::Tensor& actual) {
    const double difference = max_abs_difference(expected, actual);
    report_.max_abs_diff = std::max(report_.max_abs_diff, difference);
    if (difference >= options_.tolerance() && report_.first_mismatch.empty()) {
      report_.first_mismatch = fmt::format("step {}: {}", step + 1, subject);
    }
  }

  const EquivalenceRun& run_;
  const EquivalenceOptions& options_;
  std::vector<NamedTensor> reference_parameters_;
  std::vector<NamedTensor> candidate_parameters_;
  torch::optim::SGD reference_optimizer_;
  torch::optim::SGD candidate_optimizer_;
  EquivalenceReport report_;
};

} // namespace

EquivalenceReport check_equivalence(
    const EquivalenceRun& run,
    const EquivalenceOptions& options) {
  return Comparison(run, options).run();
}

} // namespace tandem::detail
