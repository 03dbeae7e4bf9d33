// What is left of a wrapper, while it lives and afterwards.
#include <cstdint>
#include <fstream>
#include <limits>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kIsMemoryOurs = false; // a sanitizer's grows too
#else
constexpr bool kIsMemoryOurs = true;
#endif

/// A line of /proc/self/status, in its unit (kB, or a number).
int64_t process_status(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string name;
  while (status >> name) {
    int64_t value = 0;
    if (name == field + ":" && status >> value) {
      return value;
    }
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return -1;
}

} // namespace

TEST_CASE("a thousand iterations leave nothing behind", "[dp][DP-52]") {
  const auto net = make_base<ConvLinearImpl>(1);
  const auto input = ConvLinearImpl::input(4, 2);
  std::weak_ptr<ConvLinearImpl> replica;
  const std::weak_ptr<torch::nn::Module> base = net;
  {
    tandem::DataParallel model(net, on_devices(2));
    replica = model->replica(1);
    const auto iterate = [&](int count) {
      for (int iteration = 0; iteration < count; ++iteration) {
        model(input).sum().backward();
        const torch::NoGradGuard no_grad;
        model(input);
      }
    };
    iterate(200); // what allocators and the engine keep is there then
    const auto holders = net->conv->weight.use_count();
    const auto memory_kb = process_status("VmRSS");
    const auto threads = process_status("Threads");
    REQUIRE(memory_kb > 0);
    iterate(1000);
    CHECK(net->conv->weight.use_count() == holders);
    CHECK(process_status("Threads") == threads);
    if (kIsMemoryOurs) {
      CHECK(process_status("VmRSS") <= memory_kb + 1024);
    }
  }
  CHECK(replica.expired());
  CHECK(base.use_count() == 1);
}

TEST_CASE("a wrapper ends while another lives on its module", "[dp]") {
  const auto net = make_base<ConvLinearImpl>(1);
  const auto plain = make_net<ConvLinearImpl>(1);
  const auto input = ConvLinearImpl::input(6, 2);
  tandem::DataParallel model(net, on_devices(2));
  auto pending = model(input).sin().sum();
  for (const size_t count : {2, 3}) {
    tandem::DataParallel other(net, on_devices(count));
    pending = pending + other(input).sin().sum();
  }
  pending = pending + model(input).sin().sum();
  pending.backward();
  (4 * plain->forward(input).sin().sum()).backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
}

TEST_CASE("graphs that are never run hold no wrapper", "[dp][DP-52]") {
  const auto net = make_base<ConvLinearImpl>(1);
  std::weak_ptr<ConvLinearImpl> replica;
  at::Tensor loss;
  {
    tandem::DataParallel model(net, on_devices(2));
    replica = model->replica(1);
    loss = model(ConvLinearImpl::input(4, 2)).sum();
  }
  CHECK(replica.expired());
  CHECK(loss.requires_grad());
}
