// Cases that every wrapper passes: what training through it leaves behind
// equals what the bare module on one device leaves behind.
#include "training.h"

#include "tandem_catch.h"

using namespace tandem::suite;

TEMPLATE_TEST_CASE(
    "wrapper trains like one device",
    "[suite][DP-20][DP-21][DDP-01][DDP-17][DDP-18][DDP-80][DP-39]",
    MlpImpl,
    ConvNetImpl,
    RecurrentImpl,
    AttentionImpl,
    TiedImpl,
    FrozenImpl,
    OddShapesImpl) {
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(
        wrapping,
        train<TestType>(kRows, 3, sgd_with_momentum()));
  }
}

TEST_CASE("wrapper serves adaptive optimizers", "[suite][DDP-01]") {
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, train<MlpImpl>(kRows, 5, adam()));
    check_equals_plain(wrapping, train<MlpImpl>(kRows, 5, adamw()));
  }
}

TEST_CASE("wrapper trains in float and bfloat16", "[suite][DP-45]") {
  for (const auto& wrapping : wrappings()) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      check_equals_plain(
          wrapping,
          train<MlpImpl>(kRows, 2, sgd_with_momentum(), dtype));
    }
  }
}

TEST_CASE("gradients add up when they are not zeroed", "[suite][DP-21]") {
  const Body body = [](const Worker& worker) {
    const auto net = make_seeded<MlpImpl>();
    const auto model = worker.wrap(net);
    for (int step = 0; step < 3; ++step) {
      loss_of(model, worker, MlpImpl::batch(kRows, step)).backward();
    }
    return snapshot(state_of(*net));
  };
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, body);
  }
}

TEST_CASE("zeroing in place and to none train alike", "[suite][DDP-71]") {
  const Body body = [](const Worker& worker) {
    const auto net = make_seeded<MlpImpl>();
    const auto model = worker.wrap(net);
    const auto optimizer = adam()(model->parameters());
    for (int step = 0; step < 6; ++step) {
      optimizer->zero_grad(/*set_to_none=*/step % 3 == 0);
      loss_of(model, worker, MlpImpl::batch(kRows, step)).backward();
      optimizer->step();
    }
    return snapshot(state_of(*net));
  };
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, body);
  }
}

TEST_CASE("micro-batches under no_sync equal one batch", "[suite][DDP-35]") {
  const auto whole = MlpImpl::batch(4 * kRows, 5);
  const auto one_batch = [&](const Worker& worker) {
    const auto net = make_seeded<MlpImpl>();
    const auto model = worker.wrap(net);
    loss_of(model, worker, whole).backward();
    return snapshot(state_of(*net));
  };
  const auto micro_batches = [&](const Worker& worker) {
    const auto net = make_seeded<MlpImpl>();
    const auto model = worker.wrap(net);
    for (int64_t part = 0; part < 4; ++part) {
      const Batch batch{
          whole.input.narrow(0, part * kRows, kRows),
          whole.target.narrow(0, part * kRows, kRows)};
      std::optional<tandem::NoSyncGuard> guard;
      if (part < 3) {
        guard.emplace(*model);
      }
      (loss_of(model, worker, batch) / 4).backward();
    }
    return snapshot(state_of(*net));
  };
  const auto all = wrappings(); // makes its devices before any backward
  const auto expected = one_batch({});
  for (const auto& wrapping : all) {
    for (const auto& result : run(wrapping, micro_batches)) {
      for (size_t index = 0; index < expected.size(); ++index) {
        INFO(wrapping.name << ", tensor " << index);
        CHECK(result[index].cpu().allclose(expected[index], 1e-10, 1e-10));
      }
    }
  }
}

TEST_CASE("clipping sees the averaged gradient", "[suite][DDP-73]") {
  const Body body = [](const Worker& worker) {
    const auto net = make_seeded<MlpImpl>();
    const auto model = worker.wrap(net);
    const auto optimizer = sgd_with_momentum()(model->parameters());
    double norm = 0;
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      loss_of(model, worker, MlpImpl::batch(kRows, step)).backward();
      norm = torch::nn::utils::clip_grad_norm_(model->parameters(), 0.1);
      optimizer->step();
    }
    auto state = snapshot(state_of(*net));
    state.push_back(torch::tensor(norm, torch::kDouble));
    return state;
  };
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, body);
  }
}

TEST_CASE("every process ends with the same bits", "[suite][DDP-94]") {
  const auto body = train<MlpImpl>(kRows, 5, sgd_with_momentum(), at::kFloat);
  for (const auto& wrapping : wrappings()) {
    const auto first = run(wrapping, body);
    const auto again = run(wrapping, body);
    for (size_t process = 0; process < first.size(); ++process) {
      for (size_t index = 0; index < first[0].size(); ++index) {
        INFO(wrapping.name << ", process " << process << ", tensor " << index);
        const auto expected = first[0][index].cpu();
        CHECK(first[process][index].cpu().equal(expected));
        CHECK(again[process][index].cpu().equal(expected));
      }
    }
  }
}
