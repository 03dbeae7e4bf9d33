#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

template <typename M, typename Options>
void check_trains_and_infers(Options options) {
  const size_t count = GENERATE(2, 4);
  options.batch_first(true).bidirectional(true);
  const auto net = make_base<M>(1, options);
  const auto plain = make_net<M>(1, options);
  tandem::DataParallel model(net, on_devices(count));
  torch::optim::SGD optimizer(net->parameters(), 10);
  torch::optim::SGD plain_optimizer(plain->parameters(), 10);
  const auto input = normal({4, 3, 6}, 2);
  std::get<0>(model(input)).sum().backward();
  std::get<0>(plain->forward(input)).sum().backward();
  optimizer.step();
  plain_optimizer.step();
  CHECK(are_close(net->parameters(), plain->parameters()));
  const torch::NoGradGuard no_grad;
  CHECK(
      is_close(std::get<0>(model(input)), std::get<0>(plain->forward(input))));
}

} // namespace

TEST_CASE("RNN trains and infers like the plain one", "[dp][DP-38]") {
  check_trains_and_infers<torch::nn::RNNImpl>(torch::nn::RNNOptions(6, 8));
}

TEST_CASE("GRU trains and infers like the plain one", "[dp][DP-38]") {
  check_trains_and_infers<torch::nn::GRUImpl>(torch::nn::GRUOptions(6, 8));
}

TEST_CASE("LSTM trains and infers like the plain one", "[dp][DP-38]") {
  check_trains_and_infers<torch::nn::LSTMImpl>(torch::nn::LSTMOptions(6, 8));
}
