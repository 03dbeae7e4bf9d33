// Cases that every wrapper passes, beyond the values of training.
#include <sstream>

#include <tandem/core/errors.h>

#include "tandem_catch.h"
#include "text.h"
#include "training.h"

using namespace tandem::suite;

namespace {

/// Throws when its input holds a negative number.
struct PickyImpl : torch::nn::Cloneable<PickyImpl> {
  PickyImpl() {
    reset();
  }
  void reset() override {
    linear = register_module("linear", torch::nn::Linear(1, 1));
  }
  at::Tensor forward(const at::Tensor& input) {
    if (input.min().item<double>() < 0) {
      throw std::out_of_range("wonderful");
    }
    return linear(input);
  }
  torch::nn::Linear linear{nullptr};
};

template <typename M>
void check_checkpoint_between(const Wrapping& from, const Wrapping& to) {
  const auto saved = run(from, [](const Worker& worker) {
    const auto net = make_seeded<M>();
    const auto model = worker.wrap(net);
    std::ostringstream stream;
    torch::save(std::static_pointer_cast<torch::nn::Module>(model), stream);
    const auto bytes = stream.str();
    return std::vector<at::Tensor>{
        torch::tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()))};
  });
  const auto loaded = run(to, [&](const Worker& worker) {
    const auto net = make_seeded<M>();
    {
      const torch::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) {
        parameter.zero_();
      }
    }
    const auto model = worker.wrap(net);
    std::istringstream stream(std::string(
        static_cast<const char*>(saved[0][0].data_ptr()),
        saved[0][0].numel()));
    std::shared_ptr<torch::nn::Module> as_module = model;
    torch::load(as_module, stream);
    return snapshot(net->parameters());
  });
  const auto expected = make_seeded<M>()->parameters();
  for (const auto& parameters : loaded) {
    for (size_t index = 0; index < expected.size(); ++index) {
      INFO(from.name << " -> " << to.name << ", parameter " << index);
      CHECK(parameters[index].cpu().equal(expected[index]));
    }
  }
}

} // namespace

TEST_CASE("output is that of the bare module", "[suite]") {
  const Body body = [](const Worker& worker) {
    const auto model = worker.wrap(make_seeded<MlpImpl>());
    const auto batch = MlpImpl::batch(kRows, 1);
    const auto output = model->forward(worker.share(batch.input)).detach();
    // Every process shows the whole output, zero outside its own rows.
    auto whole = torch::zeros({kRows, 4}, output.options());
    const auto rows = output.size(0);
    whole.narrow(0, worker.rank * rows, rows).copy_(output);
    model->all_reduce_sum_(whole);
    return std::vector<at::Tensor>{whole};
  };
  for (const auto& wrapping : wrappings()) {
    check_equals_plain(wrapping, body);
  }
}

TEST_CASE("eval mode and no_grad reach every replica", "[suite][DP-26]") {
  for (const auto& wrapping : wrappings()) {
    const auto results = run(wrapping, [](const Worker& worker) {
      const auto net = make_seeded<NormDropoutImpl>();
      const auto model = worker.wrap(net);
      model->eval();
      const torch::NoGradGuard no_grad;
      const auto input = normal({4, 3}, 1).to(worker.device);
      const auto output = model->forward(input);
      return std::vector<at::Tensor>{
          input,
          output,
          net->norm->running_mean,
          torch::tensor(output.requires_grad())};
    });
    for (const auto& result : results) {
      INFO(wrapping.name);
      // Untrained statistics: mean 0, variance 1, epsilon 1e-5.
      CHECK(result[1].allclose(result[0] / std::sqrt(1 + 1e-5)));
      CHECK(result[2].equal(torch::zeros_like(result[2])));
      CHECK_FALSE(result[3].item<bool>());
    }
  }
}

TEST_CASE("a forward that throws leaves the wrapper usable", "[suite][DP-31]") {
  for (const auto& wrapping : wrappings()) {
    const auto results = run(wrapping, [](const Worker& worker) {
      const auto model = worker.wrap(make_seeded<PickyImpl>());
      const auto good = torch::ones({6, 1}, torch::kDouble).to(worker.device);
      std::string text;
      try {
        model->forward(-good);
      } catch (const std::exception& error) {
        text = error.what();
      }
      model->forward(good).sum().backward();
      return std::vector<at::Tensor>{
          torch::tensor(contains(text, "wonderful")),
          model->parameters()[0].grad()};
    });
    for (const auto& result : results) {
      INFO(wrapping.name);
      CHECK(result[0].item<bool>());
      CHECK(result[1].item<double>() == 6);
    }
  }
}

TEST_CASE(
    "a checkpoint does not tell which wrapper wrote it",
    "[suite][DP-47]") {
  for (const auto& from : wrappings()) {
    for (const auto& to : {wrappings().front(), wrappings().back()}) {
      check_checkpoint_between<ConvNetImpl>(from, to);
      check_checkpoint_between<ConvNetImpl>(to, from);
    }
  }
}

TEST_CASE("names are the bare module's", "[suite][DP-47]") {
  for (const auto& wrapping : wrappings()) {
    run(wrapping, [](const Worker& worker) {
      const auto model = worker.wrap(make_seeded<ConvNetImpl>());
      const auto bare = make_seeded<ConvNetImpl>()->named_parameters().keys();
      TORCH_CHECK(model->named_parameters().keys() == bare);
      TORCH_CHECK(model->named_buffers().contains("norm.running_mean"));
      return std::vector<at::Tensor>();
    });
    SUCCEED(wrapping.name);
  }
}

TEST_CASE("wrapper tells its strategy, replicas and devices", "[suite]") {
  for (const auto& wrapping : wrappings()) {
    const auto results = run(wrapping, [&](const Worker& worker) {
      const auto model = worker.wrap(make_seeded<MlpImpl>());
      TORCH_CHECK(!model->describe().empty());
      TORCH_CHECK(model->rank() == worker.rank);
      return std::vector<at::Tensor>{
          torch::tensor(model->world_size()),
          torch::tensor(model->num_replicas())};
    });
    INFO(wrapping.name);
    CHECK(results[0][0].item<int64_t>() == wrapping.num_processes);
    CHECK(results[0][1].item<int64_t>() == wrapping.num_replicas);
  }
}

TEST_CASE("sums, broadcasts and barriers span the processes", "[suite]") {
  for (const auto& wrapping : wrappings()) {
    const auto results = run(wrapping, [](const Worker& worker) {
      const auto model = worker.wrap(make_seeded<MlpImpl>());
      auto sum = torch::full({2}, worker.rank + 1.0).to(worker.device);
      auto root = torch::full({2}, worker.rank + 5.0).to(worker.device);
      model->all_reduce_sum_(sum);
      model->broadcast_(root);
      model->barrier();
      return std::vector<at::Tensor>{sum, root};
    });
    const auto world = static_cast<double>(wrapping.num_processes);
    for (const auto& result : results) {
      INFO(wrapping.name);
      CHECK(result[0][0].item<double>() == world * (world + 1) / 2);
      CHECK(result[1][0].item<double>() == 5);
    }
  }
}
