// No forward computes with parameters other than the wrapped module's.
#include <cmath>
#include <sstream>

#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include "nets.h"
#include "tandem_catch.h"
#include "tensor_mark.h"

using namespace tandem::dp_test;
using tandem::RefreshPolicy;

namespace {

/// A weight that the output shows: y = x · weight, x = 1.
struct ScaleImpl : torch::nn::Cloneable<ScaleImpl> {
  ScaleImpl() {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({1}, at::kDouble));
  }
  at::Tensor forward(const at::Tensor& input) {
    return input * weight;
  }
  at::Tensor weight;
};

struct ScaleModel {
  explicit ScaleModel(RefreshPolicy policy)
      : net(make_base<ScaleImpl>(1)),
        model(net, on_devices(2).refresh_policy(policy)) {}

  /// The weight that replica 1 computes with.
  double seen() {
    return model(torch::ones({2}, at::kDouble))[1].item<double>();
  }

  std::shared_ptr<ScaleImpl> net;
  tandem::DataParallel<ScaleImpl> model;
};

at::Tensor filled(double value) {
  return torch::full(
      {1},
      value,
      at::TensorOptions(device()).dtype(at::kDouble));
}

/// A way to set the weight to a value.
struct Write {
  std::string name;
  std::function<void(ScaleImpl&, double)> set;
};

/// Without a backward through the wrapper, counters and addresses show these.
std::vector<Write> visible_writes() {
  return {
      {"in place",
       [](ScaleImpl& net, double value) {
         const torch::NoGradGuard no_grad;
         net.weight.fill_(value);
       }},
      {"detach()",
       [](ScaleImpl& net, double value) { net.weight.detach().fill_(value); }},
      {"init",
       [](ScaleImpl& net, double value) {
         torch::nn::init::constant_(net.weight, value);
       }},
      {"set_data",
       [](ScaleImpl& net, double value) {
         net.weight.set_data(filled(value));
       }},
      {"inference mode",
       [](ScaleImpl& net, double value) {
         const c10::InferenceMode inference;
         net.weight.fill_(value);
       }},
      {"load",
       [](ScaleImpl& net, double value) {
         auto source = std::make_shared<ScaleImpl>();
         torch::nn::init::constant_(source->weight, value);
         std::stringstream archive;
         torch::save(source, archive);
         torch::serialize::InputArchive input;
         input.load_from(archive, device());
         net.load(input);
       }},
      {"vector_to_parameters",
       [](ScaleImpl& net, double value) {
         torch::nn::utils::vector_to_parameters(
             filled(value),
             net.parameters());
       }},
      {"Adam on gradients from elsewhere",
       [](ScaleImpl& net, double value) {
         // A first step of Adam is one learning rate against the gradient.
         const double step = net.weight.item<double>() - value;
         torch::optim::Adam optimizer(
             net.parameters(),
             torch::optim::AdamOptions(std::abs(step)));
         net.weight.mutable_grad() = filled(step > 0 ? 1e8 : -1e8);
         optimizer.step();
       }},
  };
}

/// These only the bytes show.
std::vector<Write> hidden_writes() {
  std::vector<Write> writes{
      {"data()",
       [](ScaleImpl& net, double value) { net.weight.data().fill_(value); }},
      {"variable_data()",
       [](ScaleImpl& net, double value) {
         net.weight.variable_data().fill_(value);
       }},
      {"below autograd",
       [](ScaleImpl& net, double value) {
         const at::AutoDispatchBelowADInplaceOrView below;
         net.weight.fill_(value);
       }},
      {"SGD on gradients from elsewhere",
       [](ScaleImpl& net, double value) {
         torch::optim::SGD optimizer(net.parameters(), 1.0);
         net.weight.mutable_grad() = net.weight.detach() - filled(value);
         optimizer.step();
       }},
  };
  if (device_type() != at::kCUDA) {
    writes.push_back({"pointer", [](ScaleImpl& net, double value) {
                        net.weight.data_ptr<double>()[0] = value;
                      }});
  }
  return writes;
}

using Writes = std::vector<Write>;

/// Every write in turn, each after forwards that changed nothing.
void check_seen(ScaleModel& scale, const Writes& writes, bool grad_mode) {
  const torch::AutoGradMode mode(grad_mode);
  double value = 2;
  for (const auto& [name, set] : writes) {
    for (const int forwards_before : {0, 1, 2, 3}) {
      INFO(name << " after " << forwards_before << " forwards");
      for (int forward = 0; forward < forwards_before; ++forward) {
        scale.seen();
      }
      set(*scale.net, ++value);
      CHECK(std::abs(scale.seen() - value) < 1e-9);
      CHECK(std::abs(scale.seen() - value) < 1e-9);
    }
  }
}

/// What `call` sends to and from replicas 1, 2, ...
template <typename Model, typename Call>
int64_t bytes_sent(const Model& model, const Call& call) {
  const auto before = model->counters().bytes_moved;
  call();
  return model->counters().bytes_moved - before;
}

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const std::vector<at::Tensor>&)>;

template <typename Optimizer, typename Options>
MakeOptimizer maker(const Options& options) {
  return [options](const std::vector<at::Tensor>& parameters) {
    return std::make_unique<Optimizer>(parameters, options);
  };
}

std::vector<std::pair<std::string, MakeOptimizer>> optimizers() {
  using namespace torch::optim;
  return {
      {"SGD", maker<SGD>(SGDOptions(0.1))},
      {"SGD with momentum", maker<SGD>(SGDOptions(0.1).momentum(0.9))},
      {"Adam", maker<Adam>(AdamOptions(0.01))},
      {"AdamW", maker<AdamW>(AdamWOptions(0.01))},
      {"Adagrad", maker<Adagrad>(AdagradOptions(0.01))},
      {"RMSprop", maker<RMSprop>(RMSpropOptions(0.01))},
      {"LBFGS", maker<LBFGS>(LBFGSOptions(0.1).max_iter(4))},
  };
}

} // namespace

TEST_CASE("steps of every optimizer reach the next forward", "[dp][DP-20]") {
  for (const auto policy :
       {RefreshPolicy::kChecked,
        RefreshPolicy::kAlways,
        RefreshPolicy::kVersions}) {
    for (const auto& [name, make] : optimizers()) {
      INFO(name << ", policy " << static_cast<int>(policy));
      const auto net = make_base<ConvLinearImpl>(1);
      const auto plain = make_net<ConvLinearImpl>(1);
      tandem::DataParallel model(net, on_devices(2).refresh_policy(policy));
      const auto input = ConvLinearImpl::input(6, 2);
      const auto train = [&](auto& module, const auto& forward, int steps) {
        const auto optimizer = make(module.parameters());
        for (int step = 0; step < steps; ++step) {
          optimizer->step([&] {
            optimizer->zero_grad();
            auto loss = -forward(input).select(1, 0).mean();
            loss.backward();
            return loss;
          });
        }
      };
      train(
          *plain,
          [&](const auto& x) { return plain->forward(x); },
          3);
      train(
          *net,
          [&](const auto& x) { return model(x); },
          3);
      CHECK(are_close(net->parameters(), plain->parameters(), 1e-8));
      const torch::NoGradGuard no_grad;
      CHECK(is_close(model(input), plain->forward(input), 1e-8));
    }
  }
}

TEST_CASE("writes of every kind reach the next forward", "[dp]") {
  for (const auto policy : {RefreshPolicy::kChecked, RefreshPolicy::kAlways}) {
    for (const bool grad_mode : {true, false}) {
      INFO("policy " << static_cast<int>(policy) << ", grad " << grad_mode);
      ScaleModel scale(policy);
      check_seen(scale, visible_writes(), grad_mode);
      check_seen(scale, hidden_writes(), grad_mode);
    }
  }
}

TEST_CASE("kVersions sees versions, addresses and backwards", "[dp]") {
  for (const bool grad_mode : {true, false}) {
    ScaleModel scale(RefreshPolicy::kVersions);
    check_seen(scale, visible_writes(), grad_mode);
    for (const auto& [name, set] : hidden_writes()) {
      INFO(name);
      const auto before = scale.net->weight.item<double>();
      set(*scale.net, before + 1);
      CHECK(scale.seen() == before); // the documented blind spot
      const torch::AutoGradMode grad_on(true);
      scale.model(torch::ones({2}, at::kDouble)).sum().backward();
      CHECK(scale.seen() == before + 1);
    }
  }
}

TEST_CASE("memory that is freed and used again is another place", "[dp]") {
  const auto options = at::TensorOptions(device());
  auto tensor = torch::zeros({4096}, options);
  const tandem::detail::TensorMark mark(tensor);
  CHECK(mark.fits(tensor));
  const auto* const address = tensor.const_data_ptr();
  // Allocators soon give the address again that was just given back.
  for (int attempt = 0; attempt < 100; ++attempt) {
    tensor.set_data(torch::zeros({4096}, options));
    CHECK_FALSE(mark.fits(tensor));
    if (tensor.const_data_ptr() == address) {
      break;
    }
  }
}

TEST_CASE("averaged weights swapped in are those evaluated", "[dp]") {
  const auto swap_bytes = [](ScaleImpl& net, at::Tensor& average) {
    const auto kept = net.weight.detach().clone();
    net.weight.data().copy_(average);
    average.copy_(kept);
  };
  const auto swap_storage = [](ScaleImpl& net, at::Tensor& average) {
    const auto kept = net.weight.tensor_data();
    net.weight.set_data(average);
    average = kept;
  };
  for (const auto& swap :
       std::vector<std::function<void(ScaleImpl&, at::Tensor&)>>{
           swap_bytes,
           swap_storage}) {
    ScaleModel scale(RefreshPolicy::kChecked);
    auto average = filled(7);
    const torch::NoGradGuard no_grad;
    for (int evaluation = 0; evaluation < 4; ++evaluation) {
      CHECK(scale.seen() == (evaluation % 2 == 0 ? 1 : 7));
      CHECK(scale.seen() == (evaluation % 2 == 0 ? 1 : 7));
      swap(*scale.net, average);
    }
  }
}

TEST_CASE("evaluation of an unchanged model sends no parameter", "[dp]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 64, 1);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({6, 64}, 2);
  model(input).sum().backward();
  const int64_t rows_bytes = 8 * (3 * 64 + 3); // three rows go, three come
  {
    const torch::NoGradGuard no_grad;
    CHECK(bytes_sent(model, [&] { model(input); }) > rows_bytes);
    for (int forward = 0; forward < 5; ++forward) {
      CHECK(bytes_sent(model, [&] { model(input); }) == rows_bytes);
    }
  }
  model(input).sum().backward();
  // With grad mode on a backward may come: its second forward is told apart.
  CHECK(bytes_sent(model, [&] { model(input); }) > rows_bytes);
  CHECK(bytes_sent(model, [&] { model(input); }) > rows_bytes);
  CHECK(bytes_sent(model, [&] { model(input); }) == rows_bytes);
}

TEST_CASE("evaluation copies buffers, and parameters never twice", "[dp]") {
  const auto net = make_base<torch::nn::BatchNorm1dImpl>(1, 64);
  net->eval();
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({2, 64}, 2);
  const torch::NoGradGuard no_grad;
  model(input);
  // A row goes and comes; mean, variance and the number of batches.
  CHECK(bytes_sent(model, [&] {
          model(input);
        }) == 8 * (2 * 64) + 8 * (2 * 64) + 8);
}

TEST_CASE("kAlways sends the parameters at every forward", "[dp]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 64, 1);
  tandem::DataParallel model(
      net,
      on_devices(2).refresh_policy(RefreshPolicy::kAlways));
  const auto input = normal({6, 64}, 2);
  const torch::NoGradGuard no_grad;
  for (int forward = 0; forward < 3; ++forward) {
    CHECK(bytes_sent(model, [&] {
            model(input);
          }) == 8 * (3 * 64 + 3) + 8 * (64 + 1));
  }
}

TEST_CASE("refresh() sends the parameters whatever the policy", "[dp]") {
  for (const auto policy :
       {RefreshPolicy::kChecked,
        RefreshPolicy::kAlways,
        RefreshPolicy::kVersions,
        RefreshPolicy::kManual}) {
    ScaleModel scale(policy);
    const torch::NoGradGuard no_grad;
    scale.seen();
    CHECK(bytes_sent(scale.model, [&] { scale.model->refresh(); }) == 8);
    CHECK(bytes_sent(scale.model, [&] { scale.model->refresh(); }) == 8);
    scale.net->weight.data().fill_(3);
    scale.model->refresh();
    CHECK(scale.seen() == 3);
  }
}

TEST_CASE("no_sync sends nothing after its first forward", "[dp]") {
  for (const auto policy :
       {RefreshPolicy::kChecked, RefreshPolicy::kVersions}) {
    const auto net = make_base<torch::nn::BatchNorm1dImpl>(1, 64);
    tandem::DataParallel model(net, on_devices(2).refresh_policy(policy));
    const auto input = normal({4, 64}, 2);
    const int64_t rows_bytes = 8 * (2 * 64 + 2 * 64);
    const auto forward_bytes = [&] {
      at::Tensor output;
      const auto bytes = bytes_sent(model, [&] { output = model(input); });
      output.pow(2).sum().backward();
      return bytes;
    };
    for (int stretch = 0; stretch < 3; ++stretch) {
      const auto no_sync = model->no_sync();
      CHECK(forward_bytes() > rows_bytes);
      const auto nested = model->no_sync();
      CHECK(forward_bytes() == rows_bytes);
      CHECK(forward_bytes() == rows_bytes);
    }
    CHECK(forward_bytes() > rows_bytes);
  }
}

TEST_CASE("a step between two stretches of no_sync is seen", "[dp]") {
  ScaleModel scale(RefreshPolicy::kChecked);
  const auto input = torch::ones({2}, at::kDouble);
  torch::optim::SGD optimizer(scale.net->parameters(), 1.0);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    {
      const auto no_sync = scale.model->no_sync();
      CHECK(scale.seen() == 1 - 4 * step);
      scale.model(input).sum().backward();
      scale.model(input).sum().backward();
    }
    optimizer.step();
  }
}
