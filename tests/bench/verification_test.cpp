#include "harness/verification.h"

#include <tandem/core/errors.h>

#include "tandem_catch.h"
#include "verify/verify_run.h"

namespace {

using tandem::RefreshPolicy;
using tandem::bench::Activity;
using tandem::bench::BenchRecipe;
using tandem::bench::kVerifyTolerance;
using tandem::bench::Mode;
using tandem::bench::placement_of;
using tandem::bench::resolve_placement;
using tandem::bench::TimedStrategy;
using tandem::bench::Verification;
using tandem::bench::verify_mode;
using tandem::bench::WorkerScope;

Verification verify_dp(Activity activity, const BenchRecipe& recipe) {
  const Mode mode{TimedStrategy::kDP, activity, 2, 1, ""};
  tandem::bench::PlacementRequest request;
  request.device = "cpu";
  const WorkerScope worker(resolve_placement(placement_of(mode, request)));
  return verify_mode(worker, mode, recipe);
}

BenchRecipe small_recipe() {
  BenchRecipe recipe;
  recipe.workload = tandem::bench::Architecture::kMlp;
  return recipe;
}

} // namespace

TEST_CASE("every activity of dp is verified", "[bench][BN-01]") {
  for (const auto activity :
       {Activity::kTrain,
        Activity::kMeanLoss,
        Activity::kEvaluate,
        Activity::kRefresh,
        Activity::kCopyEach}) {
    const auto verified = verify_dp(activity, small_recipe());
    CHECK(verified.max_abs_diff < kVerifyTolerance);
    CHECK(verified.first_mismatch.empty());
  }
}

TEST_CASE(
    "verification finds replicas with old parameters, and says where",
    "[bench][BN-01]") {
  auto recipe = small_recipe();
  recipe.refresh_policy = RefreshPolicy::kManual;
  const auto trained = verify_dp(Activity::kTrain, recipe);
  CHECK(trained.max_abs_diff > kVerifyTolerance);
  CHECK(trained.first_mismatch == "step 2: 'layers.1.weight'");
  CHECK(
      verify_dp(Activity::kMeanLoss, recipe).first_mismatch ==
      "step 2: 'layers.1.weight'");
  CHECK(
      verify_dp(Activity::kEvaluate, recipe).first_mismatch ==
      "step 1: 'output'");
  CHECK(verify_dp(Activity::kRefresh, recipe).max_abs_diff < kVerifyTolerance);
}
