#include "module_recipes.h"

namespace tandem::sim_test {

namespace {

namespace nn = torch::nn;

at::Tensor signal() {
  return normal({2, 4, 9}, 1);
}

at::Tensor picture() {
  return normal({2, 4, 6, 7}, 2);
}

at::Tensor solid() {
  return normal({2, 4, 4, 5, 6}, 3);
}

at::Tensor sequence() {
  return normal({5, 3, 8}, 4);
}

template <typename Holder, typename Options>
Recipe recurrent_layer(const std::string& name, const Options& options) {
  return recipe(
      name,
      [=] { return Holder(options); },
      {sequence()},
      [](auto& layer, const Tensors& inputs) {
        return std::get<0>(layer.forward(inputs.at(0)));
      });
}

std::vector<Recipe> convolution_recipes() {
  return {
      unary<nn::Conv1d>(
          "Conv1d",
          signal(),
          nn::Conv1dOptions(4, 6, 3).groups(2)),
      unary<nn::Conv2d>(
          "Conv2d",
          picture(),
          nn::Conv2dOptions(4, 6, 3).stride(2).padding(1)),
      unary<nn::Conv2d>(
          "Conv2d",
          picture(),
          nn::Conv2dOptions(4, 4, 3)
              .dilation(2)
              .padding_mode(torch::kReflect)
              .padding(2)),
      unary<nn::Conv3d>("Conv3d", solid(), nn::Conv3dOptions(4, 3, 2)),
      unary<nn::ConvTranspose1d>(
          "ConvTranspose1d",
          signal(),
          nn::ConvTranspose1dOptions(4, 3, 3)),
      unary<nn::ConvTranspose2d>(
          "ConvTranspose2d",
          picture(),
          nn::ConvTranspose2dOptions(4, 3, 3).stride(2)),
      unary<nn::ConvTranspose3d>(
          "ConvTranspose3d",
          solid(),
          nn::ConvTranspose3dOptions(4, 3, 2)),
  };
}

std::vector<Recipe> normalization_recipes() {
  return {
      unary<nn::BatchNorm1d>("BatchNorm1d", signal(), 4),
      unary<nn::BatchNorm2d>("BatchNorm2d", picture(), 4),
      unary<nn::BatchNorm3d>("BatchNorm3d", solid(), 4),
      unary<nn::InstanceNorm1d>(
          "InstanceNorm1d",
          signal(),
          nn::InstanceNorm1dOptions(4).affine(true).track_running_stats(true)),
      unary<nn::InstanceNorm2d>("InstanceNorm2d", picture(), 4),
      unary<nn::InstanceNorm3d>("InstanceNorm3d", solid(), 4),
      unary<nn::LayerNorm>(
          "LayerNorm",
          picture(),
          nn::LayerNormOptions({6, 7})),
      unary<nn::GroupNorm>("GroupNorm", picture(), nn::GroupNormOptions(2, 4)),
      unary<nn::LocalResponseNorm>("LocalResponseNorm", picture(), 3),
      unary<nn::CrossMapLRN2d>(
          "CrossMapLRN2d",
          picture(),
          nn::CrossMapLRN2dOptions(3)),
  };
}

std::vector<Recipe> recurrent_recipes() {
  const auto cell_state = [](auto& cell, const Tensors& inputs) {
    return std::get<0>(cell.forward(inputs.at(0)));
  };
  return {
      recurrent_layer<nn::RNN>(
          "RNN",
          nn::RNNOptions(8, 3).num_layers(2).nonlinearity(torch::kReLU)),
      recurrent_layer<nn::LSTM>(
          "LSTM",
          nn::LSTMOptions(8, 3).num_layers(2).bidirectional(true)),
      recurrent_layer<nn::GRU>(
          "GRU",
          nn::GRUOptions(8, 3).dropout(0.5).num_layers(2)),
      unary<nn::RNNCell>("RNNCell", normal({3, 8}, 5), 8, 4),
      unary<nn::GRUCell>("GRUCell", normal({3, 8}, 5), 8, 4),
      recipe(
          "LSTMCell",
          [] { return nn::LSTMCell(8, 4); },
          {normal({3, 8}, 5)},
          cell_state),
  };
}

std::vector<Recipe> attention_recipes() {
  const nn::TransformerEncoderLayerOptions encoder_layer =
      nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(6);
  const nn::TransformerDecoderLayerOptions decoder_layer =
      nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(6);
  const Tensors two{sequence(), normal({4, 3, 8}, 6)};
  return {
      recipe(
          "MultiheadAttention",
          [] { return nn::MultiheadAttention(8, 2); },
          two,
          [](nn::MultiheadAttentionImpl& module, const Tensors& inputs) {
            return std::get<0>(
                module.forward(inputs.at(0), inputs.at(1), inputs.at(1)));
          }),
      unary<nn::TransformerEncoderLayer>(
          "TransformerEncoderLayer",
          sequence(),
          encoder_layer),
      unary<nn::TransformerEncoder>(
          "TransformerEncoder",
          sequence(),
          nn::TransformerEncoderOptions(encoder_layer, 2)),
      binary<nn::TransformerDecoderLayer>(
          "TransformerDecoderLayer",
          two,
          decoder_layer),
      binary<nn::TransformerDecoder>(
          "TransformerDecoder",
          two,
          nn::TransformerDecoderOptions(decoder_layer, 2)),
      binary<nn::Transformer>(
          "Transformer",
          two,
          nn::TransformerOptions(8, 2)
              .num_encoder_layers(1)
              .num_decoder_layers(1)
              .dim_feedforward(6)),
  };
}

std::vector<Recipe> linear_recipes() {
  return {
      unary<nn::Linear>("Linear", sequence(), 8, 3),
      binary<nn::Bilinear>(
          "Bilinear",
          {normal({4, 3}, 7), normal({4, 5}, 8)},
          nn::BilinearOptions(3, 5, 2)),
      unary<nn::Embedding>("Embedding", integers(9, {3, 4}, 9), 9, 5),
      unary<nn::EmbeddingBag>("EmbeddingBag", integers(9, {3, 4}, 9), 9, 5),
      unary<nn::EmbeddingBag>(
          "EmbeddingBag",
          integers(9, {3, 4}, 9),
          nn::EmbeddingBagOptions(9, 5).mode(torch::kMax)),
  };
}

} // namespace

std::vector<Recipe> parametric_recipes() {
  std::vector<Recipe> all;
  for (const auto& some :
       {linear_recipes(),
        convolution_recipes(),
        normalization_recipes(),
        recurrent_recipes(),
        attention_recipes()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

} // namespace tandem::sim_test
