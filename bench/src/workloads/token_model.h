#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/pimpl.h>

namespace tandem::bench {

/// Tokens of a sequence, and how many different ones there are.
inline constexpr int64_t kSequenceTokens = 32;
inline constexpr int64_t kVocabularyTokens = 1000;

/// A small language model: an encoder of two layers without dropout that sees
/// the tokens so far and scores the next one. Its outputs are large against its
/// parameters.
class TokenModelImpl : public torch::nn::Cloneable<TokenModelImpl> {
 public:
  TokenModelImpl();
  void reset() override;

  /// `tokens`: [N, kSequenceTokens], integers; returns scores,
  /// [N, kSequenceTokens, kVocabularyTokens].
  at::Tensor forward(const at::Tensor& tokens);

 private:
  torch::nn::Embedding tokens_{nullptr};
  torch::nn::Embedding positions_{nullptr};
  torch::nn::TransformerEncoder encoder_{nullptr};
  torch::nn::Linear scores_{nullptr};
  at::Tensor mask_; // [kSequenceTokens, kSequenceTokens]
};
TORCH_MODULE(TokenModel);

} // namespace tandem::bench
