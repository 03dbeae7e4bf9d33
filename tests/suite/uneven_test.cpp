// Cases that every wrapper passes where processes have different numbers of
// rows, or none.
#include "tandem_catch.h"
#include "training.h"

using namespace tandem::suite;

namespace {

constexpr int64_t kUnevenRows = 7;

at::Tensor loss_per_row(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().mean(1);
}

} // namespace

TEST_CASE("mean_loss over uneven rows is the whole batch's mean", "[suite]") {
  const Body body = [](const Worker& worker) {
    const auto net = make_seeded<MlpImpl>();
    const auto model = worker.wrap(net);
    const auto batch = MlpImpl::batch(kUnevenRows, 3);
    const auto loss = model->mean_loss(
        loss_per_row,
        worker.uneven_share(batch.target),
        worker.uneven_share(batch.input));
    loss.backward();
    auto state = snapshot(state_of(*net));
    state.push_back(loss.detach());
    return state;
  };
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, body);
  }
}

TEST_CASE("weights by rows make uneven rows one batch", "[suite]") {
  for (const bool by_number : {false, true}) {
    const Body body = [by_number](const Worker& worker) {
      const auto net = make_seeded<MlpImpl>();
      const auto model = worker.wrap(net);
      const auto optimizer = sgd_with_momentum()(model->parameters());
      for (uint64_t step = 0; step < 3; ++step) {
        const auto batch = MlpImpl::batch(kUnevenRows, step);
        const auto input = worker.uneven_share(batch.input);
        if (by_number) {
          model->set_sample_weight(static_cast<double>(input.size(0)));
        } else {
          model->set_sample_weight(tandem::SampleWeight::kRows);
        }
        optimizer->zero_grad();
        const auto output = model->forward(input);
        torch::mse_loss(
            output,
            worker.uneven_share(batch.target).to(output.device()))
            .backward();
        optimizer->step();
      }
      return snapshot(state_of(*net));
    };
    for (const auto& wrapping : wrappings()) {
      check_equals_plain(wrapping, body);
    }
  }
}

TEST_CASE("no rows anywhere give what the bare module gives", "[suite]") {
  const Body body = [](const Worker& worker) {
    const auto net = make_seeded<MlpImpl>();
    const auto model = worker.wrap(net);
    const auto batch = MlpImpl::batch(0, 3);
    const auto input = batch.input.to(worker.device);
    const auto output = model->forward(input);
    output.sum().backward();
    auto state = snapshot(state_of(*net));
    const auto loss =
        model->mean_loss(loss_per_row, batch.target.to(worker.device), input);
    state.insert(state.end(), {output.detach(), loss.isnan()});
    return state;
  };
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, body);
  }
}
