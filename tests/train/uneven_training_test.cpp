#include <cstdint>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/testing/rank_threads.h>
#include <tandem/train/trainer.h>

#include "tandem_catch.h"
#include "tensor_batches.h"
#include "tensors.h"

namespace {

using tandem::DistributedDataParallel;
using tandem::test::normal;
using tandem::testing::RankContext;
using tandem::testing::run_ranks;
using tandem::train::Batch;
using tandem::train::Trainer;
using tandem::train::TrainerOptions;
using tandem::train::test::TensorBatches;

} // namespace

TEST_CASE("a trainer takes ranks with fewer batches", "[train][JN-05]") {
  const auto results = run_ranks(3, [](RankContext& context) {
    torch::nn::Linear net(3, 2);
    net->to(torch::kDouble);
    DistributedDataParallel model(net);
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    const int64_t rows = 4 + 4 * context.rank();
    const auto seed = static_cast<uint64_t>(context.rank());
    TensorBatches batches(
        normal({rows, 3}, seed),
        normal({rows, 2}, seed + 10),
        4);
    Trainer trainer(
        *model,
        optimizer,
        [&](const Batch& batch) {
          return torch::mse_loss(model(batch.data), batch.target);
        },
        TrainerOptions().epochs(2).uneven_inputs(true).progress(false));
    const auto log = trainer.fit(batches);
    return std::make_pair(
        log,
        torch::nn::utils::parameters_to_vector(net->parameters()).detach());
  });
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const auto& [log, parameters] = results[rank];
    CHECK(log.steps == 2 * static_cast<int64_t>(rank + 1));
    CHECK(log.num_samples == 2 * (4 + 8 + 12));
    CHECK(torch::equal(parameters, results[0].second));
  }
}
