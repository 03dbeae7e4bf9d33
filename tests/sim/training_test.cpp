#include <tandem/sim/sim.h>

#include <sstream>

#include "support.h"
#include "tandem_catch.h"
#include "warnings.h"

namespace tandem::sim_test {

namespace {

namespace nn = torch::nn;

struct CnnImpl : nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    auto hidden = torch::max_pool2d(torch::relu(norm(conv(input))), 2);
    hidden = torch::relu(second(hidden)).flatten(1);
    return linear(dropout(hidden)).log_softmax(1);
  }
  nn::Conv2d conv = register_module(
      "conv",
      nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(8));
  nn::Conv2d second = register_module(
      "second",
      nn::Conv2d(nn::Conv2dOptions(8, 4, 3).padding(1).bias(false)));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.3));
  nn::Linear linear = register_module("linear", nn::Linear(4 * 64, 5));
};
TORCH_MODULE(Cnn);

struct WordsImpl : nn::Module {
  at::Tensor forward(const at::Tensor& words) {
    const auto hidden = norm(encoder(embedding(words)));
    return linear(hidden.mean(0));
  }
  nn::Embedding embedding = register_module("embedding", nn::Embedding(50, 16));
  nn::TransformerEncoder encoder = register_module(
      "encoder",
      nn::TransformerEncoder(nn::TransformerEncoderOptions(
          nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(16, 4)
                                          .dim_feedforward(32)
                                          .activation(torch::kGELU)),
          2)));
  nn::LayerNorm norm =
      register_module("norm", nn::LayerNorm(nn::LayerNormOptions({16})));
  nn::Linear linear = register_module("linear", nn::Linear(16, 10));
};
TORCH_MODULE(Words);

Recipe mlp() {
  return recipe(
      "mlp",
      [] {
        return nn::Sequential(
            nn::Linear(7, 31),
            nn::ReLU(),
            nn::Dropout(0.2),
            nn::Linear(31, 5));
      },
      {normal({9, 7}, 1)});
}

template <typename Layer, typename Options>
Recipe recurrent(const std::string& name, const Options& options) {
  return recipe(
      name,
      [options] { return Layer(options); },
      {normal({6, 4, 3}, 2)},
      [](auto& layer, const Tensors& inputs) {
        return std::get<0>(layer.forward(inputs.at(0)));
      });
}

MakeOptimizer plain_sgd() {
  return [](const Tensors& parameters) {
    return std::make_unique<torch::optim::SGD>(parameters, 0.1);
  };
}

} // namespace

TEST_CASE("an MLP trains on sim bit for bit as on the CPU", "[sim]") {
  start_devices();
  check_trains_as_on_cpu(mlp());
  check_trains_as_on_cpu(mlp(), [](const Tensors& parameters) {
    return std::make_unique<torch::optim::Adam>(parameters, 0.01);
  });
}

TEST_CASE("a CNN trains on sim bit for bit as on the CPU", "[sim]") {
  start_devices();
  check_trains_as_on_cpu(
      recipe("cnn", [] { return Cnn(); }, {normal({6, 3, 16, 16}, 3)}));
}

TEST_CASE("a channels-last CNN trains on sim as on the CPU", "[sim]") {
  start_devices();
  const auto input =
      normal({6, 3, 16, 16}, 3).contiguous(at::MemoryFormat::ChannelsLast);
  CHECK(input.to(sim::device(0)).is_contiguous(at::MemoryFormat::ChannelsLast));
  check_trains_as_on_cpu(recipe("cnn", [] { return Cnn(); }, {input}));
}

TEST_CASE("a Transformer trains on sim bit for bit as on the CPU", "[sim]") {
  start_devices();
  check_trains_as_on_cpu(
      recipe("words", [] { return Words(); }, {integers(50, {12, 4}, 4)}));
}

TEST_CASE("recurrent layers train on sim bit for bit as on the CPU", "[sim]") {
  start_devices();
  test::expect_warning("LSTM with projections is not supported with oneDNN");
  check_trains_as_on_cpu(recurrent<nn::LSTM>(
      "lstm",
      nn::LSTMOptions(3, 5).num_layers(2).dropout(0.4).bidirectional(true)));
  check_trains_as_on_cpu(recurrent<nn::LSTM>(
      "lstm with projections",
      nn::LSTMOptions(3, 5).proj_size(2)));
  check_trains_as_on_cpu(recurrent<nn::GRU>(
      "gru",
      nn::GRUOptions(3, 5).num_layers(2).dropout(0.4)));
  check_trains_as_on_cpu(
      recurrent<nn::RNN>("rnn", nn::RNNOptions(3, 5).num_layers(2)));
}

TEST_CASE("packed sequences train on sim bit for bit as on the CPU", "[sim]") {
  start_devices();
  const auto lengths = torch::tensor({6, 4, 1}, torch::kLong);
  check_trains_as_on_cpu(recipe(
      "packed",
      [] { return nn::LSTM(3, 5); },
      {normal({6, 3, 3}, 5)},
      [=](nn::LSTMImpl& layer, const Tensors& inputs) {
        namespace rnn = nn::utils::rnn;
        const auto packed = rnn::pack_padded_sequence(inputs.at(0), lengths);
        const auto output =
            std::get<0>(layer.forward_with_packed_input(packed));
        return std::get<0>(rnn::pad_packed_sequence(output));
      }));
}

TEST_CASE("embeddings with sparse gradients train as on the CPU", "[sim]") {
  start_devices();
  check_trains_as_on_cpu(
      recipe(
          "embedding",
          [] {
            return nn::Embedding(nn::EmbeddingOptions(11, 3).sparse(true));
          },
          {integers(11, {4, 5}, 6)}),
      plain_sgd());
  check_trains_as_on_cpu(
      recipe(
          "embedding bag",
          [] {
            return nn::EmbeddingBag(
                nn::EmbeddingBagOptions(11, 3).sparse(true).mode(torch::kSum));
          },
          {integers(11, {4, 5}, 7)}),
      plain_sgd());
}

TEST_CASE("a module keeps its values on the way to a device", "[sim]") {
  start_devices();
  torch::manual_seed(1);
  nn::Linear linear(3, 2);
  const auto expected = linear->weight.detach().clone();
  const auto* const handle = linear->weight.unsafeGetTensorImpl();
  linear->to(sim::device(2));
  CHECK(linear->weight.device() == sim::device(2));
  CHECK(linear->weight.unsafeGetTensorImpl() == handle);
  CHECK(same_bits(linear->weight, expected));
  linear->to(at::kCPU);
  CHECK(same_bits(linear->weight, expected));
}

TEST_CASE("save and load go from a device to the CPU and back", "[sim]") {
  start_devices();
  nn::Sequential source(nn::Linear(3, 2), nn::BatchNorm1d(2));
  source->to(sim::device(1));
  for (const auto device : {at::Device(at::kCPU), sim::device(0)}) {
    std::stringstream file;
    torch::save(source, file);
    nn::Sequential target(nn::Linear(3, 2), nn::BatchNorm1d(2));
    torch::load(target, file, device);
    check_same_bits(target->parameters(), source->parameters());
    check_same_bits(target->buffers(), source->buffers());
    CHECK(target->parameters()[0].device() == device);
  }
}

} // namespace tandem::sim_test
