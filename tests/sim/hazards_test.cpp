#include <tandem/sim/hazard_error.h>
#include <tandem/sim/sim.h>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <tandem/testing/error_text.h>

#include "support.h"
#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

c10::impl::VirtualGuardImpl guard() {
  return {at::kPrivateUse1};
}

/// Two devices whose uses of memory are checked.
void start_checked_devices() {
  at::set_num_threads(1);
  sim::init({.devices = 2, .hazard_checks = true});
}

c10::Stream usual(int64_t device = 0) {
  return guard().getDefaultStream(sim::device(device));
}

c10::Stream new_stream(int64_t device = 0) {
  return guard().getNewStream(sim::device(device));
}

std::string name_of(const c10::Stream& stream) {
  return stream.device().str() + " stream " + std::to_string(stream.id());
}

c10::Event recorded(const c10::Stream& stream) {
  c10::Event event(at::kPrivateUse1);
  event.record(stream);
  return event;
}

void wait(const c10::Stream& stream, const c10::Stream& other) {
  recorded(other).block(stream);
}

at::Tensor zeros(int64_t device = 0) {
  return torch::zeros({8}, sim::device(device));
}

using Work = std::function<void()>;

/// What `work` with `stream` as the current one throws; empty if nothing.
std::string hazard(const c10::Stream& stream, const Work& work) {
  const c10::StreamGuard on_stream(stream);
  return testing::thrown_text<sim::HazardError>(work).value_or("");
}

void check_hazard(
    const c10::Stream& stream,
    const Work& work,
    const std::vector<std::string>& parts) {
  const auto text = hazard(stream, work);
  INFO(text);
  CHECK_FALSE(text.empty());
  CHECK(testing::missing_parts(text, parts).empty());
}

} // namespace

TEST_CASE(
    "a use that no event orders is an error that names operators, streams and "
    "remedy, and changes nothing",
    "[sim][hazards]") {
  start_checked_devices();
  const auto x = zeros();
  x.add_(2);
  const auto side = new_stream();
  check_hazard(
      side,
      [&] { x.mul_(3); },
      {"aten::mul on " + name_of(side),
       "aten::add_ on " + name_of(usual()),
       "writes",
       "Record an event on " + name_of(usual()),
       "let " + name_of(side) + " wait"});
  CHECK_THROWS_AS(
      [&] {
        const c10::StreamGuard on_side(side);
        x.sum();
      }(),
      tandem::Error);
  CHECK(same_bits(x, torch::full({8}, 2.0F)));
}

TEST_CASE("hazards are not looked for unless asked", "[sim][hazards]") {
  start_devices();
  const auto x = zeros();
  CHECK(hazard(new_stream(), [&] { x.add_(1); }).empty());
  CHECK(same_bits(x, torch::ones({8})));
}

TEST_CASE("waits by stream and host order uses", "[sim][hazards]") {
  start_checked_devices();
  const auto x = zeros();
  const std::vector<std::pair<std::string, std::function<void(c10::Stream)>>>
      ways{
          {"event", [](c10::Stream side) { wait(side, usual()); }},
          {"synchronised event",
           [](c10::Stream) { recorded(usual()).synchronize(); }},
          {"queried event", [](c10::Stream) { recorded(usual()).query(); }},
          {"synchronised stream", [](c10::Stream) { usual().synchronize(); }},
          {"queried stream", [](c10::Stream) { usual().query(); }},
          {"synchronised device",
           [](c10::Stream) { guard().synchronizeDevice(0); }},
          {"number", [&](c10::Stream) { x.sum().item<float>(); }},
          {"copy to the host", [&](c10::Stream) { x.cpu(); }},
          {"copy from the host",
           [&](c10::Stream) { torch::ones({2}).to(sim::device(0)); }},
      };
  for (const auto& [name, way] : ways) {
    INFO(name);
    x.add_(1);
    const auto side = new_stream();
    CHECK_FALSE(hazard(side, [&] { x.add_(1); }).empty());
    way(side);
    CHECK(hazard(side, [&] { x.add_(1); }).empty());
    wait(usual(), side);
  }
}

TEST_CASE(
    "waits that come too early or elsewhere order nothing",
    "[sim][hazards]") {
  start_checked_devices();
  const auto x = zeros();
  const auto side = new_stream();
  auto early = recorded(usual());
  x.add_(1);
  early.block(side);
  wait(side, usual(1));
  wait(usual(), side);
  guard().synchronizeDevice(1);
  x.to(at::kCPU, /*non_blocking=*/true);
  CHECK_FALSE(hazard(side, [&] { x.add_(1); }).empty());
}

TEST_CASE("order passes through a third stream", "[sim][hazards]") {
  start_checked_devices();
  const auto x = zeros();
  const auto second = new_stream(1);
  const auto third = new_stream();
  wait(second, usual());
  wait(third, second);
  CHECK(hazard(third, [&] { x.add_(1); }).empty());
}

TEST_CASE("reads need no order, a write after a read does", "[sim][hazards]") {
  start_checked_devices();
  const auto x = zeros();
  const auto side = new_stream();
  wait(side, usual());
  at::Tensor sum;
  CHECK(hazard(side, [&] { sum = x + x; }).empty());
  CHECK(hazard(usual(), [&] { x * 2; }).empty());
  check_hazard(
      usual(),
      [&] { x.zero_(); },
      {"aten::zero_", "aten::add on " + name_of(side), "reads"});
  // The result was written on the side stream.
  check_hazard(usual(), [&] { sum.exp(); }, {"aten::exp", "aten::add"});
  wait(usual(), side);
  CHECK(hazard(usual(), [&] { x.zero_().add_(sum); }).empty());
}

TEST_CASE("out= and running statistics count as writes", "[sim][hazards]") {
  start_checked_devices();
  const auto x = torch::ones({4, 2}, sim::device(0));
  auto out = torch::empty({4, 2}, sim::device(0));
  const auto mean = torch::zeros({2}, sim::device(0));
  const auto variance = torch::ones({2}, sim::device(0));
  const auto side = new_stream();
  wait(side, usual());
  const auto normalise = [&](bool training) {
    at::batch_norm(x, {}, {}, mean, variance, training, 0.1, 1e-5, false);
  };
  CHECK(hazard(side, [&] { normalise(false); }).empty());
  CHECK(hazard(usual(), [&] { normalise(false); }).empty());
  CHECK_FALSE(hazard(usual(), [&] { normalise(true); }).empty());
  CHECK(hazard(side, [&] { at::add_out(out, x, x); }).empty());
  CHECK_FALSE(hazard(usual(), [&] { out.sum(); }).empty());
}

TEST_CASE(
    "views share their memory's uses, parts of it are told apart",
    "[sim][hazards]") {
  start_checked_devices();
  const auto x = torch::zeros({4, 4}, sim::device(0));
  const auto side = new_stream();
  wait(side, usual());
  x.slice(0, 0, 2).add_(1);
  CHECK(hazard(side, [&] { x.slice(0, 2, 4).view({8}).add_(1); }).empty());
  CHECK(hazard(side, [&] { x.t(); }).empty());
  CHECK_FALSE(hazard(side, [&] { x.t().slice(1, 1, 3).sum(); }).empty());
  CHECK_FALSE(hazard(usual(), [&] { x.sum(); }).empty());
  wait(usual(), side);
  CHECK(x.sum().item<float>() == 16);
}

TEST_CASE(
    "a copy between devices waits for both current streams",
    "[sim][hazards]") {
  start_checked_devices();
  const auto x = zeros(0);
  const auto there = x.to(sim::device(1));
  CHECK(hazard(usual(1), [&] { there.add_(1); }).empty());
  CHECK(hazard(usual(0), [&] { x.copy_(there); }).empty());
  x.add_(1);
  // Streams that are not current when it is copied get no order.
  CHECK_FALSE(hazard(new_stream(1), [&] { there.mul(2); }).empty());
  CHECK_FALSE(hazard(new_stream(0), [&] { there.copy_(x); }).empty());
  CHECK(hazard(usual(1), [&] { there.add_(1); }).empty());
  CHECK_FALSE(hazard(new_stream(1), [&] { there.copy_(x); }).empty());
  const auto side = new_stream(1);
  wait(side, usual(1));
  CHECK(hazard(side, [&] { there.copy_(x); }).empty());
  CHECK_FALSE(hazard(usual(1), [&] { there.mul(2); }).empty());
}

TEST_CASE(
    "memory freed in use is an error when it may be given again",
    "[sim][hazards]") {
  start_checked_devices();
  const auto side = new_stream();
  at::Tensor sum;
  const auto use_and_free = [&](bool announce) {
    const auto x = zeros();
    wait(side, usual());
    CHECK(hazard(side, [&] { sum = x + 1; }).empty());
    if (announce) {
      x.record_stream(side);
    }
  };
  use_and_free(/*announce=*/true);
  CHECK(hazard(usual(), [] { zeros(); }).empty());
  use_and_free(/*announce=*/false);
  CHECK(hazard(side, [] { zeros(); }).empty()); // other memory
  check_hazard(
      usual(),
      [] { zeros(); },
      {"allocation of 32 bytes on " + name_of(usual()),
       "aten::add on " + name_of(side),
       "record_stream"});
  wait(usual(), side);
  CHECK(hazard(usual(), [] { zeros(); }).empty());
}

TEST_CASE("training on a stream of its own has no hazard", "[sim][hazards]") {
  start_checked_devices();
  const auto side = new_stream();
  torch::nn::Linear linear(3, 4);
  torch::nn::GRU gru(4, 2);
  linear->to(sim::device(0));
  gru->to(sim::device(0));
  auto parameters = linear->parameters();
  for (const auto& parameter : gru->parameters()) {
    parameters.push_back(parameter);
  }
  torch::optim::Adam optimizer(parameters);
  const auto input = torch::ones({5, 2, 3}, sim::device(0));
  for (int step = 0; step < 3; ++step) {
    at::Tensor loss;
    CHECK(hazard(side, [&] {
            wait(side, usual());
            optimizer.zero_grad();
            loss = std::get<0>(gru(linear(input))).pow(2).sum();
          }).empty());
    CHECK(hazard(usual(), [&] {
            wait(usual(), side);
            loss.backward();
            optimizer.step();
          }).empty());
  }
}

TEST_CASE(
    "the gradient of a side stream's work needs no wait, its values do",
    "[sim][hazards]") {
  start_checked_devices();
  const auto weight = zeros().requires_grad_();
  const auto side = new_stream();
  at::Tensor loss;
  CHECK(hazard(side, [&] {
          wait(side, usual());
          loss = (weight * 2).sum();
        }).empty());
  CHECK_FALSE(hazard(usual(), [&] { loss + 1; }).empty());
  // The engine starts from a new gradient on the current stream and waits.
  CHECK(hazard(usual(), [&] { loss.backward(); }).empty());
  CHECK(hazard(usual(), [&] { weight.grad().add_(1); }).empty());
  CHECK(same_bits(weight.grad(), torch::full({8}, 3.0F)));
}

} // namespace tandem::sim_test
