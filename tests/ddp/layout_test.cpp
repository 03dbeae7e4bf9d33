// Shapes, strides and kinds of tensors that gradients come in.
#include "support.h"

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "tandem_catch.h"

namespace tandem::test {
namespace {

torch::nn::Sequential make_conv_net(at::MemoryFormat format) {
  torch::nn::Sequential net(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)),
      torch::nn::ReLU(),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 2, 3)));
  net->to(at::kDouble);
  fill(*net, 4);
  for (auto& parameter : net->parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.detach().contiguous(format));
    }
  }
  return net;
}

TEST_CASE("convolutions keep channels-last gradients", "[ddp][DDP-76]") {
  const auto batch = normal({4, 3, 8, 8}, 5);
  for (const auto format :
       {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    auto alone = make_conv_net(format);
    alone->forward(batch).square().mean().backward();
    for (const int64_t cap_bytes : {int64_t(1), int64_t(25) << 20}) {
      for (const bool as_view : {true, false}) {
        run_ranks(2, [&](RankContext& context) {
          auto net = make_conv_net(format);
          DistributedDataParallel model(
              net,
              Options()
                  .gradient_as_bucket_view(as_view)
                  .first_bucket_bytes(cap_bytes)
                  .bucket_cap_bytes(cap_bytes));
          // With new gradients, in new buckets, and zeroed in place.
          for (int64_t step = 0; step < 3; ++step) {
            model->zero_grad(/*set_to_none=*/step < 2);
            model(share(batch, context).contiguous(format))
                .square()
                .mean()
                .backward();
            const auto gradients = grads_of(*net);
            for (size_t i = 0; i < gradients.size(); ++i) {
              TORCH_CHECK(
                  gradients[i].strides() == net->parameters()[i].strides());
              TORCH_CHECK(is_close(gradients[i], grads_of(*alone)[i]));
            }
          }
        });
      }
    }
  }
}

/// Every second element of a tensor as its parameter.
struct GapsImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return weight * input;
  }
  at::Tensor weight = register_parameter(
      "weight",
      torch::ones({6}, at::kDouble).slice(0, 0, 6, 2).detach());
};
TORCH_MODULE(Gaps);

TEST_CASE("a parameter with gaps trains", "[ddp][DDP-78]") {
  for (const bool as_view : {true, false}) {
    run_ranks(2, [&](RankContext& context) {
      Gaps net;
      TORCH_CHECK(!net->weight.is_contiguous());
      DistributedDataParallel model(
          net,
          Options().gradient_as_bucket_view(as_view));
      torch::optim::SGD optimizer(net->parameters(), 1);
      const auto rank = static_cast<double>(context.rank());
      model(torch::full({3}, rank, at::kDouble)).sum().backward();
      TORCH_CHECK(net->weight.grad().eq(0.5).all().item<bool>());
      optimizer.step();
      TORCH_CHECK(net->weight.eq(0.5).all().item<bool>());
    });
  }
}

/// A recurrent layer over a packed sequence.
struct ReaderImpl : torch::nn::Module {
  ReaderImpl() {
    to(at::kDouble);
    fill(*this, 2);
  }
  std::tuple<at::Tensor, std::tuple<at::Tensor, at::Tensor>> forward(
      const at::Tensor& input,
      const at::Tensor& lengths) {
    const auto packed = torch::nn::utils::rnn::pack_padded_sequence(
        input,
        lengths,
        /*batch_first=*/true,
        /*enforce_sorted=*/false);
    const auto [output, state] = lstm->forward_with_packed_input(packed);
    return {
        std::get<0>(torch::nn::utils::rnn::pad_packed_sequence(output, true)),
        state};
  }
  torch::nn::LSTM lstm = register_module(
      "lstm",
      torch::nn::LSTM(torch::nn::LSTMOptions(4, 2).batch_first(true)));
};
TORCH_MODULE(Reader);

TEST_CASE("an LSTM over packed sequences", "[ddp][DDP-92]") {
  const auto input = normal({4, 5, 4}, 6);
  const auto lengths = torch::tensor({5, 2, 3, 5});
  Reader alone;
  const auto [expected, expected_state] = alone(input, lengths);
  (expected.sum() + std::get<1>(expected_state).sum()).backward();
  for (const bool find_unused : {false, true}) {
    run_ranks(2, [&](RankContext& context) {
      Reader net;
      DistributedDataParallel model(
          net,
          Options()
              .find_unused_parameters(find_unused)
              .reduce_op(comm::ReduceOp::kSum));
      for (int64_t step = 0; step < 2; ++step) {
        model->zero_grad();
        const auto [output, state] =
            model(share(input, context), share(lengths, context));
        TORCH_CHECK(
            is_close(output, share(expected, context).detach().clone()));
        (output.sum() + std::get<1>(state).sum()).backward();
        TORCH_CHECK(are_close(grads_of(*net), grads_of(*alone)));
      }
    });
  }
}

/// Makes its state itself at the first call, and takes it from then on.
struct FeedbackImpl : torch::nn::Module {
  std::pair<at::Tensor, at::Tensor> forward(
      const at::Tensor& input,
      const std::optional<at::Tensor>& state) {
    const auto last = state ? *state : torch::zeros_like(input);
    return {weight * (input + last), (weight * input).detach()};
  }
  at::Tensor weight =
      register_parameter("weight", torch::full({1}, 2., at::kDouble));
};
TORCH_MODULE(Feedback);

TEST_CASE("what forward makes is fed back to it", "[ddp][DDP-63]") {
  for (const bool find_unused : {false, true}) {
    run_ranks(2, [&](RankContext& context) {
      Feedback net;
      DistributedDataParallel model(
          net,
          Options().find_unused_parameters(find_unused));
      const auto input =
          torch::full({1}, static_cast<double>(context.rank()), at::kDouble);
      std::optional<at::Tensor> state;
      for (int64_t step = 0; step < 3; ++step) {
        model->zero_grad();
        auto [output, next] = model(input, state);
        TORCH_CHECK(!next.requires_grad());
        output.sum().backward();
        TORCH_CHECK(value_of(net->weight.grad()) == (step == 0 ? 0.5 : 1.5));
        state = next;
      }
    });
  }
}

} // namespace
} // namespace tandem::test
