// Random modules on random nestings of tensors equal one device, for every
// batch size from 0 to 17 on 1 to 5 devices. A failure prints its seed.
#include <map>
#include <random>
#include <variant>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace dp_property {

/// Tensors and numbers in any nesting.
struct Tree {
  std::variant<
      at::Tensor,
      double,
      std::vector<Tree>,
      std::map<std::string, Tree>>
      node;
};
TANDEM_TREE_FIELDS(Tree, node)

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// 0 to `limit` - 1.
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(limit));
  }

 private:
  std::mt19937_64 engine_;
};

/// A tree with at least one tensor; `make_leaf` makes them.
template <typename MakeLeaf>
Tree random_tree(Random& random, const MakeLeaf& make_leaf, int depth = 0) {
  const int64_t size = 1 + random.below(3);
  switch (depth < 3 ? random.below(4) : 0) {
    case 1: {
      std::vector<Tree> list{{make_leaf()}};
      for (int64_t index = 1; index < size; ++index) {
        list.push_back(random_tree(random, make_leaf, depth + 1));
      }
      list.push_back({static_cast<double>(size)});
      return {std::move(list)};
    }
    case 2: {
      std::map<std::string, Tree> named;
      for (int64_t index = 0; index < size; ++index) {
        named[std::string(1, static_cast<char>('a' + index))] =
            random_tree(random, make_leaf, depth + 1);
      }
      return {std::move(named)};
    }
    default:
      return {make_leaf()};
  }
}

enum class Layer {
  kLinear,
  kFrozen,
  kTied,
  kUnused,
  kNorm,
  kScale,
  kShift,
};
constexpr int64_t kNumLayers = 7;
constexpr int64_t kFeatures = 4;

/// A chain of layers, the kinds of which follow from the seed.
struct RandomNetImpl : torch::nn::Cloneable<RandomNetImpl> {
  explicit RandomNetImpl(uint64_t given_seed) : seed(given_seed) {
    reset();
  }

  void reset() override {
    Random random(seed);
    kinds.clear();
    linears.clear();
    scale = register_parameter("scale", torch::tensor(1.25));
    shift = register_buffer("shift", torch::full({kFeatures}, 0.5));
    shift.set_requires_grad(random.below(2) == 0);
    const int64_t depth = 1 + random.below(5);
    for (int64_t index = 0; index < depth; ++index) {
      const auto kind = index == 0
          ? Layer::kLinear
          : static_cast<Layer>(random.below(kNumLayers));
      kinds.push_back(kind);
      auto linear = register_module(
          "linear" + std::to_string(index),
          torch::nn::Linear(kFeatures, kFeatures));
      linears.emplace_back(std::move(linear));
      if (kind == Layer::kFrozen) {
        linears.back()->weight.set_requires_grad(false);
      }
    }
    tied = register_parameter("tied", linears.front()->weight);
  }

  Tree forward(const Tree& input) {
    auto x = projected(tandem::tensors_in(input));
    for (size_t index = 0; index < kinds.size(); ++index) {
      x = torch::tanh(run_layer(kinds[index], linears[index], x));
    }
    Random random(seed + 1);
    return random_tree(random, [&] {
      return (x * static_cast<double>(1 + random.below(3))).sin();
    });
  }

  /// The inputs side by side, cut or filled up to the layers' width.
  static at::Tensor projected(const std::vector<at::Tensor>& inputs) {
    const auto x = torch::cat(inputs, 1);
    return torch::constant_pad_nd(x, {0, 3 * kFeatures})
        .unfold(1, kFeatures, 1)
        .sum(1);
  }

  at::Tensor run_layer(
      Layer kind,
      torch::nn::Linear& linear,
      const at::Tensor& x) const {
    switch (kind) {
      case Layer::kUnused:
        return x;
      case Layer::kTied:
        return torch::linear(x, tied);
      case Layer::kNorm:
        return torch::layer_norm(x, {kFeatures}, linear->bias);
      case Layer::kScale:
        return x * scale;
      case Layer::kShift:
        return x + shift;
      default:
        return linear(x);
    }
  }

  uint64_t seed;
  std::vector<Layer> kinds;
  std::vector<torch::nn::Linear> linears;
  at::Tensor scale;
  at::Tensor shift;
  at::Tensor tied;
};

/// Some of its tensors require grad.
Tree random_input(int64_t rows, uint64_t seed) {
  Random random(seed);
  return random_tree(random, [&] {
    const auto leaf =
        normal({rows, 1 + random.below(3)}, seed + random.below(1000));
    return leaf.set_requires_grad(random.below(2) == 0);
  });
}

/// A sum that tells outputs apart.
at::Tensor loss_of(const Tree& output) {
  at::Tensor loss;
  int64_t factor = 0;
  for (const auto& tensor : tandem::tensors_in(output)) {
    const auto term = tensor.exp().sum() * ++factor;
    loss = loss.defined() ? loss + term : term;
  }
  return loss;
}

std::vector<at::Tensor> grads_of_all(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> grads;
  grads.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    grads.push_back(tensor.grad());
  }
  return grads;
}

/// What two training steps leave: outputs, gradients, parameters.
template <typename Forward>
std::vector<at::Tensor> two_steps(
    const Forward& forward,
    torch::nn::Module& module,
    int64_t rows,
    uint64_t seed) {
  torch::optim::SGD optimizer(
      module.parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<at::Tensor> results;
  const auto keep = [&](const std::vector<at::Tensor>& tensors) {
    const auto copies = snapshot(tensors);
    results.insert(results.end(), copies.begin(), copies.end());
  };
  for (uint64_t step = 0; step < 2; ++step) {
    const auto input = random_input(rows, seed + step);
    const Tree output = forward(input);
    optimizer.zero_grad();
    loss_of(output).backward();
    optimizer.step();
    keep(tandem::tensors_in(output));
    keep(grads_of_all(tandem::tensors_in(input)));
    keep(grads_of(module));
    keep(grads_of_all(module.buffers()));
    keep(module.parameters());
  }
  return results;
}

} // namespace dp_property

using namespace dp_property;

TEST_CASE("random modules and nestings train as on one device", "[dp]") {
  for (int64_t rows = 0; rows <= 17; ++rows) {
    for (size_t count = 1; count <= 5; ++count) {
      const uint64_t seed = 100 * rows + count;
      INFO("seed " << seed << ": " << rows << " rows, " << count << " devices");
      const auto net = make_base<RandomNetImpl>(seed, seed);
      const auto plain = make_net<RandomNetImpl>(seed, seed);
      tandem::DataParallel model(
          net,
          on_devices(count).bucket_cap_bytes(1 + 100 * (seed % 3)));
      const auto expected = two_steps(
          [&](const Tree& input) { return plain->forward(input); },
          *plain,
          rows,
          seed);
      const auto actual = two_steps(
          [&](const Tree& input) { return model(input); },
          *net,
          rows,
          seed);
      REQUIRE(actual.size() == expected.size());
      CHECK(are_close(actual, expected));
    }
  }
}

TEST_CASE("mean_loss of random modules is the mean of all rows", "[dp]") {
  const auto criterion = [](const Tree& output, const at::Tensor& target) {
    at::Tensor losses = target.square().sum(1);
    for (const auto& tensor : tandem::tensors_in(output)) {
      losses = losses + (tensor - target).square().sum(1);
    }
    return losses;
  };
  for (int64_t rows = 1; rows <= 17; ++rows) {
    for (size_t count = 1; count <= 5; ++count) {
      const uint64_t seed = 100 * rows + count + 50;
      INFO("seed " << seed << ": " << rows << " rows, " << count << " devices");
      const auto net = make_base<RandomNetImpl>(seed, seed);
      const auto plain = make_net<RandomNetImpl>(seed, seed);
      tandem::DataParallel model(net, on_devices(count));
      const auto input = random_input(rows, seed);
      const auto target = normal({rows, kFeatures}, seed);
      const auto loss = model->mean_loss(criterion, target, input);
      const auto expected = criterion(plain->forward(input), target).mean();
      CHECK(is_close(loss, expected));
      loss.backward();
      expected.backward();
      CHECK(are_close(grads_of(*net), grads_of(*plain)));
    }
  }
}
