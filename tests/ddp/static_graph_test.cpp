#include "support.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "flags.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

/// A layer used `times` times, and one that may be left out.
struct RepeatsImpl : torch::nn::Module {
  std::pair<std::vector<at::Tensor>, at::Tensor> forward(
      const at::Tensor& input,
      int64_t times,
      bool uses_other) {
    auto output = input;
    for (int64_t i = 0; i < times; ++i) {
      output = torch::tanh(layer(output));
    }
    return {{uses_other ? other(output) : output}, output};
  }
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(2, 2));
  torch::nn::Linear other = register_module("other", torch::nn::Linear(2, 2));
};
TORCH_MODULE(Repeats);

/// Parameters after six steps.
at::Tensor train_repeats(
    const RankContext& context,
    const Options& options,
    int64_t times,
    bool uses_other) {
  Repeats net;
  net->to(at::kDouble);
  fill(*net, 3);
  DistributedDataParallel model(net, options);
  return test::train(
      [&](const at::Tensor& input) {
        const auto [list, output] = model(input, times, uses_other);
        return list[0] + output;
      },
      *net,
      &context,
      6);
}

TEST_CASE("a static graph trains like any other", "[ddp][DDP-47]") {
  for (const bool uses_other : {true, false}) {
    for (const int64_t times : {1, 2, 3}) {
      run_ranks(2, [&](RankContext& context) {
        const auto expected = train_repeats(
            context,
            Options().find_unused_parameters(true),
            times,
            uses_other);
        for (const auto& options : with_static_graph()) {
          TORCH_CHECK(torch::equal(
              train_repeats(context, options, times, uses_other),
              expected));
        }
      });
    }
  }
}

/// Errors of two ranks whose graph is another from the third step on.
std::vector<std::exception_ptr> change_graph(bool uses_first, bool uses_then) {
  return try_ranks(2, [&](RankContext&) {
    Repeats net;
    DistributedDataParallel model(net, Options().static_graph(true));
    for (int64_t step = 0; step < 4; ++step) {
      model->zero_grad();
      const auto output =
          model(torch::ones({1, 2}), 1, step < 2 ? uses_first : uses_then);
      output.first[0].sum().backward();
    }
  });
}

TEST_CASE("a static graph that changes is refused", "[ddp][DDP-48]") {
  for (const bool uses_first : {true, false}) {
    for (const auto& error : change_graph(uses_first, !uses_first)) {
      const auto text = text_of(error);
      CHECK(is<ConfigError>(error));
      CHECK(contains(text, "'other."));
      CHECK_FALSE(contains(text, "'layer."));
      CHECK(contains(text, "The graph changed"));
    }
    for (const auto& error : change_graph(uses_first, uses_first)) {
      CHECK_FALSE(error);
    }
  }
}

/// One weight under two names, each times the input.
struct SharedImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return first(input) + again * input;
  }
  Scale first = register_module("first", Scale(at::kDouble));
  at::Tensor again = register_parameter("again", first->weight);
};
TORCH_MODULE(Shared);

TEST_CASE("a weight may be used twice", "[ddp][DDP-52]") {
  for (const auto& options : all_flags()) {
    for (const bool set_to_none : {true, false}) {
      run_ranks(2, [&](RankContext& context) {
        Shared net;
        DistributedDataParallel model(net, options);
        for (int64_t step = 0; step < 3; ++step) {
          model->zero_grad(set_to_none);
          const auto input = static_cast<double>(context.rank() + 1);
          model(net->first->input(input)).sum().backward();
          TORCH_CHECK(net->first->weight.grad().item<double>() == 3);
        }
      });
    }
  }
}

} // namespace
} // namespace tandem::test
