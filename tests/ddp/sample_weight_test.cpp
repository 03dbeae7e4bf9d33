#include <limits>

#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

/// Of a batch of kRows rows, those of three ranks.
const std::vector<int64_t> kUneven{3, 1, 8};
const std::vector<int64_t> kOneWithout{4, 0, 8};

at::Tensor weighed_rows(
    const at::Tensor& batch,
    const std::vector<int64_t>& rows_of_rank,
    int64_t rank) {
  return batch.split_with_sizes(rows_of_rank)[static_cast<size_t>(rank)];
}

/// Trains on uneven rows by each rank's own mean loss; the parameters after.
at::Tensor train_unevenly(
    const RankContext& context,
    const std::vector<int64_t>& rows_of_rank,
    const Options& options) {
  Mlp net;
  DistributedDataParallel model(net, options);
  model->set_sample_weight(SampleWeight::kRows);
  return train(
      [&](const at::Tensor& batch) {
        return model(weighed_rows(batch, rows_of_rank, context.rank()));
      },
      *net,
      nullptr,
      3);
}

/// Two ranks whose one weight has the gradients 4 and 8.
struct WeighedRank {
  explicit WeighedRank(const RankContext& context, const Options& options = {})
      : rank(context.rank()), model(net, options) {}

  at::Tensor forward(double times = 1) {
    return model(torch::full({1}, 4.0 * (rank + 1) * times, at::kDouble));
  }
  double grad() const {
    return net->weight.grad().item<double>();
  }

  Scale net{at::kDouble};
  int64_t rank;
  DistributedDataParallel<ScaleImpl> model;
};

TEST_CASE("weights by rows give the gradient of all rows' mean", "[ddp]") {
  for (const auto& rows_of_rank : {kUneven, kOneWithout}) {
    const auto expected = train_alone(Mlp(), 3);
    for (const bool as_view : {true, false}) {
      const auto results = run_ranks(3, [&](RankContext& context) {
        return train_unevenly(
            context,
            rows_of_rank,
            Options().gradient_as_bucket_view(as_view));
      });
      for (const auto& result : results) {
        CHECK(is_close(result, expected, 1e-12));
        CHECK(is_equal(result, results[0]));
      }
    }
  }
}

TEST_CASE("a number weighs a rank's gradients", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    WeighedRank self(context);
    self.model->set_sample_weight(self.rank == 0 ? 1 : 3);
    self.forward().backward();
    TORCH_CHECK(self.grad() == 7); // (1 * 4 + 3 * 8) / 4
    self.model->set_sample_weight(self.rank == 0 ? 0.5 : 0);
    self.model->zero_grad();
    self.forward().backward();
    TORCH_CHECK(self.grad() == 4);
    self.model->set_sample_weight(SampleWeight::kEqual);
    self.model->zero_grad();
    self.forward().backward();
    TORCH_CHECK(self.grad() == 6);
  });
}

TEST_CASE("a number on one rank goes with rows on another", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    WeighedRank self(context);
    if (self.rank == 0) {
      self.model->set_sample_weight(SampleWeight::kRows); // one row
    } else {
      self.model->set_sample_weight(3);
    }
    self.forward().backward();
    TORCH_CHECK(self.grad() == 7);
  });
}

TEST_CASE("weighing costs one number per synchronised forward", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    WeighedRank self(context);
    const auto sent_by = [&](const auto& function) {
      const auto before = self.model->counters();
      function();
      const auto after = self.model->counters();
      return std::vector<int64_t>{
          after.collectives - before.collectives,
          after.bytes_moved - before.bytes_moved};
    };
    const auto step = [&] { self.forward().backward(); };
    using Sent = std::vector<int64_t>;
    TORCH_CHECK((sent_by(step) == Sent{1, 8}));
    self.model->set_sample_weight(SampleWeight::kRows);
    TORCH_CHECK((sent_by(step) == Sent{2, 16}));
    const auto guard = self.model->no_sync();
    TORCH_CHECK((sent_by(step) == Sent{0, 0}));
  });
}

TEST_CASE("rows add up under no_sync", "[ddp]") {
  const auto input = normal({kRows, 2}, 1);
  Mlp alone;
  alone(input).square().mean().backward();
  run_ranks(3, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    model->set_sample_weight(SampleWeight::kRows);
    const auto own = weighed_rows(input, kUneven, context.rank());
    // The first row by itself, then the others, of which rank 1 has none.
    const auto parts = own.split_with_sizes({1, own.size(0) - 1});
    const auto accumulate = [&](const at::Tensor& part) {
      const double share =
          static_cast<double>(part.size(0)) / static_cast<double>(own.size(0));
      const auto loss = part.size(0) == 0 ? model(part).sum()
                                          : model(part).square().mean() * share;
      loss.backward();
    };
    {
      const auto guard = model->no_sync();
      accumulate(parts[0]);
    }
    accumulate(parts[1]);
    TORCH_CHECK(are_close(grads_of(*net), grads_of(*alone), 1e-12));
  });
}

TEST_CASE("mean_loss takes no notice of sample weights", "[ddp]") {
  const auto input = normal({kRows, 2}, 1);
  const auto target = normal({kRows, 4}, 2);
  const auto criterion = [](const at::Tensor& output, const at::Tensor& rows) {
    return (output - rows).square().sum(1);
  };
  Mlp alone;
  criterion(alone(input), target).mean().backward();
  run_ranks(3, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    model->set_sample_weight(SampleWeight::kRows);
    model
        ->mean_loss(
            criterion,
            weighed_rows(target, kUneven, context.rank()),
            weighed_rows(input, kUneven, context.rank()))
        .backward();
    TORCH_CHECK(are_close(grads_of(*net), grads_of(*alone), 1e-12));
  });
}

TEST_CASE("each forward keeps its weight until its backward", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    WeighedRank self(context);
    self.model->set_sample_weight(self.rank == 0 ? 1 : 3);
    const auto first = self.forward();
    self.model->set_sample_weight(self.rank == 0 ? 3 : 1);
    const auto second = self.forward(10);
    first.backward();
    TORCH_CHECK(self.grad() == 7);
    second.backward();
    TORCH_CHECK(self.grad() == 7 + 50); // (3 * 40 + 1 * 80) / 4
  });
}

TEST_CASE("one backward over two weights is refused by name", "[ddp]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    WeighedRank self(context);
    self.model->set_sample_weight(self.rank == 0 ? 1 : 3);
    const auto first = self.forward();
    self.model->set_sample_weight(1);
    (first + self.forward()).backward();
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    CHECK(is<ConfigError>(errors[rank]));
    const auto text = text_of(errors[rank]);
    CHECK(contains(text, "rank " + std::to_string(rank) + "/2"));
    CHECK(contains(text, "sample weight"));
  }
  run_ranks(2, [](RankContext& context) {
    WeighedRank self(context);
    self.model->set_sample_weight(self.rank == 0 ? 1 : 3);
    (self.forward() + self.forward(10)).backward();
    TORCH_CHECK(self.grad() == 77);
  });
}

TEST_CASE("weights that add up to nothing are an error on all ranks", "[ddp]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Mlp net;
    DistributedDataParallel model(net);
    model->set_sample_weight(SampleWeight::kRows);
    model(torch::zeros({0, 2}, at::kDouble)).sum().backward();
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    CHECK(is<ConfigError>(errors[rank]));
    CHECK(contains(
        text_of(errors[rank]),
        "rank " + std::to_string(rank) +
            "/2] sample weight: expected a sum over the ranks above 0, got 0"));
  }
}

TEST_CASE("a weight below zero or not finite changes nothing", "[ddp]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  run_ranks(2, [&](RankContext& context) {
    WeighedRank self(context);
    for (const double weight : {-1.0, -infinity, infinity, std::nan("")}) {
      const auto message =
          message_thrown_by([&] { self.model->set_sample_weight(weight); });
      TORCH_CHECK(contains(
          message,
          "[ddp rank " + std::to_string(self.rank) + "/2] sample weight"));
    }
    self.forward().backward();
    TORCH_CHECK(self.grad() == 6);
  });
}

TEST_CASE("a rank that does not begin to weigh is named", "[ddp]") {
  const auto errors = try_ranks(
      2,
      [](RankContext& context) {
        WeighedRank self(context);
        if (self.rank == 0) {
          self.model->set_sample_weight(SampleWeight::kRows);
        }
      },
      testing::RunRanksOptions().startup_timeout(std::chrono::seconds(1)));
  CHECK(is<TimeoutError>(errors[0]));
  CHECK(contains(text_of(errors[0]), "[ddp rank 0/2]"));
  CHECK(contains(text_of(errors[0]), "set_sample_weight"));
  CHECK(contains(text_of(errors[0]), "rank 1"));
}

TEST_CASE("an input without rows cannot be weighed by them", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    WeighedRank self(context);
    self.model->set_sample_weight(SampleWeight::kRows);
    const auto message =
        message_thrown_by([&] { self.model(torch::ones({}, at::kDouble)); });
    TORCH_CHECK(contains(message, "expected an input with rows"));
  });
}

TEST_CASE("a world of one is not changed by weights", "[ddp]") {
  for (const bool reduces : {false, true}) {
    run_ranks(1, [&](RankContext& context) {
      WeighedRank self(context, Options().reduce_at_world_one(reduces));
      self.model->set_sample_weight(0.25);
      self.forward().backward();
      TORCH_CHECK(self.grad() == 4);
    });
  }
}

} // namespace
} // namespace tandem::test
