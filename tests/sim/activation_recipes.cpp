#include "module_recipes.h"

namespace tandem::sim_test {

namespace {

namespace nn = torch::nn;

at::Tensor values() {
  return normal({4, 6}, 1);
}

at::Tensor channels() {
  return normal({3, 4, 5, 6}, 2);
}

} // namespace

std::vector<Recipe> activation_recipes() {
  return {
      unary<nn::ELU>("ELU", values()),
      unary<nn::SELU>("SELU", values()),
      unary<nn::CELU>("CELU", values()),
      unary<nn::GELU>("GELU", values()),
      unary<nn::GELU>("GELU", values(), nn::GELUOptions().approximate("tanh")),
      unary<nn::GLU>("GLU", values()),
      unary<nn::Hardshrink>("Hardshrink", values()),
      unary<nn::Hardtanh>("Hardtanh", values()),
      unary<nn::LeakyReLU>("LeakyReLU", values()),
      unary<nn::LogSigmoid>("LogSigmoid", values()),
      unary<nn::LogSoftmax>("LogSoftmax", values(), 1),
      unary<nn::Mish>("Mish", values()),
      unary<nn::PReLU>("PReLU", values()),
      unary<nn::ReLU>("ReLU", values()),
      unary<nn::ReLU6>("ReLU6", values()),
      unary<nn::RReLU>("RReLU", values()),
      unary<nn::SiLU>("SiLU", values()),
      unary<nn::Sigmoid>("Sigmoid", values()),
      unary<nn::Softmax>("Softmax", values(), 1),
      unary<nn::Softmax2d>("Softmax2d", channels()),
      unary<nn::Softmin>("Softmin", values(), 1),
      unary<nn::Softplus>("Softplus", values()),
      unary<nn::Softshrink>("Softshrink", values()),
      unary<nn::Softsign>("Softsign", values()),
      unary<nn::Tanh>("Tanh", values()),
      unary<nn::Tanhshrink>("Tanhshrink", values()),
      unary<nn::Threshold>("Threshold", values(), 0.1, 2.0),
      unary<nn::Dropout>("Dropout", values(), 0.4),
      unary<nn::Dropout2d>("Dropout2d", channels(), 0.4),
      unary<nn::Dropout3d>("Dropout3d", normal({2, 3, 2, 3, 4}, 3), 0.4),
      unary<nn::AlphaDropout>("AlphaDropout", values(), 0.4),
      unary<nn::FeatureAlphaDropout>("FeatureAlphaDropout", channels(), 0.4),
  };
}

} // namespace tandem::sim_test
