#include "workloads/token_model.h"

#include <limits>

#include <ATen/ops/full.h>
#include <torch/nn/modules/transformerlayer.h>

namespace tandem::bench {

namespace {

constexpr int64_t kFeatures = 64;
constexpr int64_t kHeads = 4;
constexpr int64_t kHiddenFeatures = 256;
constexpr int64_t kEncoderLayers = 2;

} // namespace

TokenModelImpl::TokenModelImpl() {
  reset();
}

void TokenModelImpl::reset() {
  using namespace torch::nn; // NOLINT(google-build-using-namespace)
  tokens_ = register_module("tokens", Embedding(kVocabularyTokens, kFeatures));
  positions_ =
      register_module("positions", Embedding(kSequenceTokens, kFeatures));
  encoder_ = register_module(
      "encoder",
      TransformerEncoder(TransformerEncoderOptions(
          TransformerEncoderLayer(
              TransformerEncoderLayerOptions(kFeatures, kHeads)
                  .dim_feedforward(kHiddenFeatures)
                  .dropout(0)),
          kEncoderLayers)));
  scores_ = register_module("scores", Linear(kFeatures, kVocabularyTokens));
  mask_ = register_buffer(
      "mask",
      at::full(
          {kSequenceTokens, kSequenceTokens},
          -std::numeric_limits<float>::infinity())
          .triu(1));
}

at::Tensor TokenModelImpl::forward(const at::Tensor& tokens) {
  const auto features =
      tokens_->forward(tokens) + positions_->weight; // [N, T, kFeatures]
  const auto encoded = encoder_->forward(features.transpose(0, 1), mask_);
  return scores_->forward(encoded.transpose(0, 1));
}

} // namespace tandem::bench
