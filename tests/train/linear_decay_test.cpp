#include <tandem/train/linear_decay.h>

#include <torch/torch.h>

#include <tandem/core/errors.h>

#include "checks.h"
#include "tandem_catch.h"

using tandem::train::LinearDecay;
using tandem::train::test::nearly_equal;

TEST_CASE("a linear decay reaches 0 after its steps and stays", "[train]") {
  torch::optim::SGD optimizer({torch::ones(1)}, 0.4);
  optimizer.add_param_group(torch::optim::OptimizerParamGroup(
      {torch::ones(1)},
      std::make_unique<torch::optim::SGDOptions>(0.8)));
  LinearDecay decay(optimizer, 4);
  for (const double left : {0.75, 0.5, 0.25, 0.0, 0.0}) {
    decay.step();
    const auto& groups = optimizer.param_groups();
    CHECK(nearly_equal(groups[0].options().get_lr(), 0.4 * left));
    CHECK(nearly_equal(groups[1].options().get_lr(), 0.8 * left));
  }
  CHECK_THROWS_AS(LinearDecay(optimizer, 0), tandem::ConfigError);
}
