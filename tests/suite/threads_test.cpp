#include <thread>

#include <tandem/comm/comm.h>
#include <tandem/testing/rank_processes.h>
#include <tandem/testing/rank_threads.h>

#include "devices.h"
#include "tandem_catch.h"
#include "text.h"
#include "training.h"

using namespace tandem::suite;

namespace {

constexpr int kSteps = 3;

/// What `function` throws in a thread of its own; null if nothing.
std::exception_ptr in_another_thread(const std::function<void()>& function) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      function();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  return error;
}

Wrapping ranks_of(int64_t world_size) {
  return {
      "ranks",
      tandem::WrapOptions(tandem::Strategy::kDDP),
      tandem::test::device(),
      world_size,
      world_size};
}

/// In float, where another order of additions would show.
Body train_in_float() {
  return train<ConvNetImpl>(kRows, kSteps, sgd_with_momentum(), at::kFloat);
}

TANDEM_RANK_FUNCTION(trains_the_suites_net) {
  using namespace tandem::comm;
  init_process_group(ProcessGroupOptions().device(DeviceChoice::kCPU));
  const auto worker =
      rank_worker(ranks_of(process.world_size()), process.rank());
  const auto state = train_in_float()(worker);
  destroy_process_group();
  tandem::testing::RankResult result;
  for (size_t index = 0; index < state.size(); ++index) {
    result.tensors[std::to_string(index)] = state[index].cpu();
  }
  return result;
}

} // namespace

TEST_CASE(
    "ranks as threads and ranks as processes end with the same bits",
    "[suite][DDP-88][only-cpu][only-sim]") {
  for (const int64_t world_size : {2, 3}) {
    const auto threads = run(ranks_of(world_size), train_in_float());
    const auto processes =
        tandem::testing::run_processes(world_size, "trains_the_suites_net");
    REQUIRE(threads.size() == processes.size());
    for (size_t rank = 0; rank < threads.size(); ++rank) {
      REQUIRE(threads[rank].size() == processes[rank].tensors.size());
      for (size_t index = 0; index < threads[rank].size(); ++index) {
        CAPTURE(world_size, rank, index);
        CHECK(threads[rank][index].cpu().equal(
            processes[rank].tensors.at(std::to_string(index))));
      }
    }
  }
}

TEST_CASE(
    "forward and backward may run in different threads",
    "[suite][DDP-89]") {
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, [](const Worker& worker) {
      const auto net = make_seeded<MlpImpl>();
      const auto model = worker.wrap(net);
      const auto optimizer = sgd_with_momentum()(model->parameters());
      for (int step = 0; step < kSteps; ++step) {
        optimizer->zero_grad();
        const auto loss =
            loss_of(model, worker, MlpImpl::batch(kRows, 100 + 2 * step));
        if (const auto error = in_another_thread([&] { loss.backward(); })) {
          std::rethrow_exception(error);
        }
        optimizer->step();
      }
      return snapshot(state_of(*net));
    });
  }
}

TEST_CASE(
    "a backward's error comes out in the thread that called it",
    "[suite][DDP-89]") {
  for (const auto& wrapping : wrappings()) {
    const auto results = run(wrapping, [](const Worker& worker) {
      const auto model = worker.wrap(make_seeded<MlpImpl>());
      const auto batch = MlpImpl::batch(kRows, 100);
      const auto loss = loss_of(model, worker, batch);
      loss.register_hook([](const at::Tensor& gradient) -> at::Tensor {
        TORCH_CHECK(!gradient.defined(), "wonderful");
        return gradient;
      });
      const auto error = in_another_thread([&] { loss.backward(); });
      const bool found =
          error && contains(tandem::message_of(error), "wonderful");
      loss_of(model, worker, batch).backward();
      return std::vector<at::Tensor>{
          torch::tensor(found),
          model->parameters()[0].grad()};
    });
    for (const auto& result : results) {
      INFO(wrapping.name);
      CHECK(result[0].item<bool>());
      CHECK(result[1].defined());
    }
  }
}
