#include "module_recipes.h"

namespace tandem::sim_test {

namespace {

namespace nn = torch::nn;

constexpr int64_t kRows = 5;
constexpr int64_t kClasses = 4;

at::Tensor scores() {
  return normal({kRows, kClasses}, 1);
}

at::Tensor classes() {
  return integers(kClasses, {kRows}, 2);
}

at::Tensor signs(at::IntArrayRef sizes) {
  return integers(2, sizes, 3).mul(2).sub(1).to(torch::kFloat);
}

at::Tensor zeros_and_ones() {
  return integers(2, {kRows, kClasses}, 4).to(torch::kFloat);
}

/// A loss of probabilities, or of their logarithms, made from scores.
template <typename Holder, typename Prepare, typename... Options>
Recipe prepared(
    const std::string& name,
    const at::Tensor& target,
    Prepare prepare,
    const Options&... options) {
  return recipe(
      name,
      [=] { return Holder(options...); },
      {scores(), target},
      [prepare](auto& loss, const Tensors& inputs) {
        return loss.forward(prepare(inputs.at(0)), inputs.at(1).detach());
      });
}

/// A loss of three tensors.
template <typename Holder>
Recipe ternary(const std::string& name, const Tensors& data) {
  return recipe(
      name,
      [] { return Holder(); },
      data,
      [](auto& loss, const Tensors& inputs) {
        return loss.forward(inputs.at(0), inputs.at(1), inputs.at(2));
      });
}

std::vector<Recipe> distance_recipes() {
  const Tensors two{scores(), normal({kRows, kClasses}, 5)};
  const Tensors three{two[0], two[1], normal({kRows, kClasses}, 6)};
  const Tensors with_sign{two[0], two[1], signs({kRows})};
  const auto rows = [](int64_t seed) {
    return normal({kRows}, static_cast<uint64_t>(seed));
  };
  return {
      binary<nn::CosineSimilarity>("CosineSimilarity", two),
      binary<nn::PairwiseDistance>("PairwiseDistance", two),
      ternary<nn::TripletMarginLoss>("TripletMarginLoss", three),
      ternary<nn::TripletMarginWithDistanceLoss>(
          "TripletMarginWithDistanceLoss",
          three),
      ternary<nn::CosineEmbeddingLoss>("CosineEmbeddingLoss", with_sign),
      ternary<nn::MarginRankingLoss>(
          "MarginRankingLoss",
          {rows(7), rows(8), signs({kRows})}),
  };
}

Recipe ctc_recipe() {
  return recipe(
      "CTCLoss",
      [] { return nn::CTCLoss(); },
      {normal({8, 2, kClasses}, 9)},
      [](nn::CTCLossImpl& loss, const Tensors& inputs) {
        return loss.forward(
            inputs.at(0).log_softmax(2),
            torch::tensor({{1, 2, 1}, {3, 3, 2}}, torch::kLong)
                .to(inputs.at(0).device()),
            torch::tensor({8, 7}, torch::kLong),
            torch::tensor({3, 2}, torch::kLong));
      });
}

Recipe adaptive_recipe() {
  return recipe(
      "AdaptiveLogSoftmaxWithLoss",
      [] {
        return nn::AdaptiveLogSoftmaxWithLoss(
            nn::AdaptiveLogSoftmaxWithLossOptions(32, 12, {4, 8}));
      },
      {normal({kRows, 32}, 9), integers(12, {kRows}, 10)},
      [](nn::AdaptiveLogSoftmaxWithLossImpl& module, const Tensors& inputs) {
        return module.forward(inputs.at(0), inputs.at(1)).output;
      });
}

} // namespace

std::vector<Recipe> loss_recipes() {
  const auto target = normal({kRows, kClasses}, 11);
  const auto log_softmax = [](const at::Tensor& input) {
    return input.log_softmax(1);
  };
  const auto sigmoid = [](const at::Tensor& input) { return input.sigmoid(); };
  std::vector<Recipe> all{
      binary<nn::L1Loss>("L1Loss", {scores(), target}),
      binary<nn::MSELoss>("MSELoss", {scores(), target}),
      binary<nn::SmoothL1Loss>("SmoothL1Loss", {scores(), target}),
      binary<nn::HuberLoss>("HuberLoss", {scores(), target}),
      binary<nn::PoissonNLLLoss>("PoissonNLLLoss", {scores(), target.abs()}),
      binary<nn::CrossEntropyLoss>("CrossEntropyLoss", {scores(), classes()}),
      binary<nn::CrossEntropyLoss>(
          "CrossEntropyLoss",
          {scores(), target.softmax(1)},
          nn::CrossEntropyLossOptions().label_smoothing(0.1)),
      binary<nn::MultiMarginLoss>("MultiMarginLoss", {scores(), classes()}),
      binary<nn::MultiLabelMarginLoss>(
          "MultiLabelMarginLoss",
          {scores(),
           torch::tensor({1L, 3L, -1L, 0L}).expand({kRows, kClasses})}),
      binary<nn::HingeEmbeddingLoss>(
          "HingeEmbeddingLoss",
          {scores(), signs({kRows, kClasses})}),
      binary<nn::SoftMarginLoss>(
          "SoftMarginLoss",
          {scores(), signs({kRows, kClasses})}),
      binary<nn::MultiLabelSoftMarginLoss>(
          "MultiLabelSoftMarginLoss",
          {scores(), zeros_and_ones()}),
      binary<nn::BCEWithLogitsLoss>(
          "BCEWithLogitsLoss",
          {scores(), zeros_and_ones()}),
      prepared<nn::BCELoss>("BCELoss", zeros_and_ones(), sigmoid),
      prepared<nn::NLLLoss>("NLLLoss", classes(), log_softmax),
      prepared<nn::KLDivLoss>(
          "KLDivLoss",
          target.softmax(1),
          log_softmax,
          nn::KLDivLossOptions().reduction(torch::kBatchMean)),
      ctc_recipe(),
      adaptive_recipe(),
  };
  for (auto& each : distance_recipes()) {
    all.push_back(std::move(each));
  }
  return all;
}

} // namespace tandem::sim_test
