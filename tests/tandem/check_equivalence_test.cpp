#include <tandem/check_equivalence.h>

#include <torch/torch.h>

#include <tandem/comm/backend.h>
#include <tandem/core/errors.h>
#include <tandem/testing/faulty_backend.h>
#include <tandem/testing/rank_threads.h>
#include <tandem/wrap.h>

#include "tandem_catch.h"
#include "text.h"

namespace {

using tandem::DataParallelOptions;
using tandem::DistributedDataParallelOptions;
using tandem::EquivalenceOptions;
using tandem::EquivalenceReport;
using tandem::Parallel;
using tandem::RefreshPolicy;
using tandem::Strategy;
using tandem::WrapOptions;
using tandem::testing::Fault;

constexpr double kLimit = 1e-9;

/// Two layers with a buffer between them, which the output depends on.
class ScaledImpl : public torch::nn::Cloneable<ScaledImpl> {
 public:
  ScaledImpl() {
    reset();
  }
  void reset() override {
    first = register_module("first", torch::nn::Linear(3, 4));
    second = register_module("second", torch::nn::Linear(4, 2));
    scale = register_buffer("scale", torch::ones({}));
    to(torch::kDouble);
    fill();
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return second(torch::tanh(first(input)) * scale);
  }

  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
  torch::Tensor scale;

 private:
  /// The same values in every thread.
  void fill() {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      parameter.copy_(torch::arange(parameter.numel(), torch::kDouble)
                          .sin()
                          .view(parameter.sizes()));
    }
  }
};

torch::data::Example<> batch_of(int64_t step) {
  const auto data =
      torch::arange(6 * 3, torch::kDouble).add(step).cos().view({6, 3});
  return {data, data.slice(1, 0, 2) * 2};
}

void disturb_buffers(torch::nn::Module& module, int64_t step, int64_t rank) {
  for (auto& buffer : module.buffers()) {
    buffer.add_(0.5 * static_cast<double>(step + 3 * rank));
  }
}

EquivalenceReport check(const WrapOptions& options) {
  ScaledImpl reference;
  const auto candidate = tandem::wrap(std::make_shared<ScaledImpl>(), options);
  return tandem::check_equivalence(
      reference,
      *candidate,
      EquivalenceOptions(
          batch_of,
          [](const torch::Tensor& output, const torch::Tensor& target) {
            return torch::mse_loss(output, target);
          })
          .disturb(disturb_buffers));
}

/// The reports of all ranks of a world of two.
std::vector<EquivalenceReport> check_ddp(
    const DistributedDataParallelOptions& options = {}) {
  return tandem::testing::run_ranks(2, [&](auto&) {
    return check(WrapOptions(Strategy::kDDP).ddp(options));
  });
}

DataParallelOptions two_replicas() {
  return DataParallelOptions().devices({at::kCPU, at::kCPU});
}

std::vector<EquivalenceReport> check_with_fault(const Fault& fault) {
  const tandem::comm::ScopedBackend scope(
      at::kCPU,
      tandem::testing::faulty_backend(
          tandem::comm::backend_factory(at::kCPU),
          fault));
  return check_ddp();
}

} // namespace

TEST_CASE("every wrapper is found to be equal to the bare module", "[tandem]") {
  std::vector<EquivalenceReport> reports{
      check(Strategy::kSingle),
      check(WrapOptions(Strategy::kDP).dp(two_replicas()))};
  for (auto& report : check_ddp()) {
    reports.push_back(report);
  }
  for (const auto& report : reports) {
    CHECK(report.max_abs_diff < 1e-14);
    CHECK(report.first_mismatch.empty());
  }
}

TEST_CASE(
    "a transport that forgets the division is found at the first gradient",
    "[tandem]") {
  for (const auto& report :
       check_with_fault({Fault::Kind::kForgetsDivision, 0})) {
    CHECK(report.max_abs_diff > kLimit);
    CHECK(report.first_mismatch == "step 1: gradient of 'first.weight'");
  }
}

TEST_CASE(
    "a transport that drops an all-reduce is found in that step",
    "[tandem]") {
  for (int64_t step = 0; step < 3; ++step) {
    for (const auto& report :
         check_with_fault({Fault::Kind::kDropsAllReduce, step})) {
      INFO(report.first_mismatch);
      CHECK(report.max_abs_diff > kLimit);
      CHECK(tandem::test::contains(
          report.first_mismatch,
          "step " + std::to_string(step + 1) + ": gradient of"));
    }
  }
}

TEST_CASE(
    "replicas that are never refreshed are found at the second output",
    "[tandem]") {
  const auto report =
      check(WrapOptions(Strategy::kDP)
                .dp(two_replicas().refresh_policy(RefreshPolicy::kManual)));
  CHECK(report.max_abs_diff > kLimit);
  CHECK(report.first_mismatch == "step 2: output");
}

TEST_CASE(
    "buffers that are not broadcast are found on the rank that has its own",
    "[tandem]") {
  const auto reports =
      check_ddp(DistributedDataParallelOptions().broadcast_buffers(false));
  CHECK(reports[1].max_abs_diff > kLimit);
  CHECK(reports[1].first_mismatch == "step 1: output");
}

TEST_CASE("values that are no numbers are a mismatch", "[tandem]") {
  torch::nn::Linear reference(1, 1);
  torch::nn::Linear net(1, 1);
  const auto candidate = tandem::wrap(net);
  const auto report = tandem::check_equivalence(
      *reference,
      *candidate,
      EquivalenceOptions(
          [](int64_t) {
            return torch::data::Example<>(
                torch::full({1, 1}, NAN),
                torch::zeros({1, 1}));
          },
          [](const torch::Tensor& output, const torch::Tensor& target) {
            return torch::mse_loss(output, target);
          }));
  CHECK(report.max_abs_diff == std::numeric_limits<double>::max());
  CHECK(report.first_mismatch == "step 1: output");
}

TEST_CASE("a batch that ranks cannot share equally is refused", "[tandem]") {
  const auto errors = tandem::testing::try_ranks(4, [](auto&) {
    check(Strategy::kDDP); // 6 rows
  });
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(tandem::test::contains(
        tandem::message_of(error),
        "a multiple of the 4 ranks, got 6"));
  }
}
