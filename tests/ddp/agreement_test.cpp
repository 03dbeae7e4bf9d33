#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

/// What wrapping throws on each of three ranks; all must say the same.
template <typename Wrap>
std::string disagreement(Wrap wrap) {
  const auto errors =
      try_ranks(3, [&](RankContext& context) { wrap(context.rank()); });
  const auto without_tag = [](const std::exception_ptr& error) {
    const auto text = text_of(error);
    const auto line = text.substr(0, text.find('\n'));
    return line.substr(line.find(']') + 1);
  };
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(without_tag(error) == without_tag(errors[0]));
  }
  return text_of(errors[0]);
}

template <typename Change>
std::string option_disagreement(Change change) {
  return disagreement([&](int64_t rank) {
    Scale net;
    Options options;
    if (rank == 1) {
      change(options);
    }
    DistributedDataParallel model(net, options);
  });
}

TEST_CASE("more parameters on one rank are named", "[ddp][DDP-07]") {
  const auto text = disagreement([](int64_t rank) {
    torch::nn::Sequential net(torch::nn::Linear(2, 2));
    if (rank == 1) {
      net->push_back(torch::nn::Linear(2, 2));
    }
    DistributedDataParallel model(net);
  });
  CHECK(contains(text, "parameters: expected 2 as on rank 0, got 4 on rank 1"));
  CHECK(contains(text, "'1.weight'"));
  CHECK(!contains(text, "'1.bias'"));
}

TEST_CASE("more buffers on one rank are named", "[ddp][DDP-07]") {
  const auto text = disagreement([](int64_t rank) {
    Scale net;
    if (rank == 2) {
      net->register_buffer("extra", torch::ones({2}));
    }
    DistributedDataParallel model(net);
  });
  CHECK(contains(text, "buffers: expected 0 as on rank 0, got 1 on rank 2"));
  CHECK(contains(text, "'extra'"));
}

TEST_CASE("a parameter's strides are compared", "[ddp][DDP-10]") {
  const auto text = disagreement([](int64_t rank) {
    torch::nn::Conv2d net(torch::nn::Conv2dOptions(8, 16, 2));
    if (rank == 1) {
      net->weight.set_data(
          net->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
    }
    DistributedDataParallel model(net);
  });
  CHECK(contains(text, "parameter 'weight'"));
  CHECK(contains(text, "expected Float [16, 8, 2, 2] contiguous"));
  CHECK(contains(text, "strides [32, 1, 16, 8]"));
}

TEST_CASE("shape, dtype and requires_grad are compared", "[ddp][DDP-10]") {
  const auto text_for = [](auto make) {
    return disagreement([&](int64_t rank) {
      auto net = make(rank);
      DistributedDataParallel model(net);
    });
  };
  const auto shape =
      text_for([](int64_t rank) { return torch::nn::Linear(2, 3 + rank / 2); });
  CHECK(contains(shape, "'weight': expected Float [3, 2]"));
  CHECK(contains(shape, "got Float [4, 2]"));
  const auto dtype = text_for(
      [](int64_t rank) { return Scale(rank == 1 ? at::kDouble : at::kFloat); });
  CHECK(contains(dtype, "got Double [1]"));
  const auto frozen = text_for([](int64_t rank) {
    Towers net;
    net->right->weight.set_requires_grad(rank != 1);
    return net;
  });
  CHECK(contains(frozen, "parameter 'right.weight'"));
}

TEST_CASE("options are compared by name", "[ddp][DDP-13]") {
  const auto cap = option_disagreement(
      [](Options& options) { options.bucket_cap_bytes(1000); });
  CHECK(contains(
      cap,
      "option bucket_cap_bytes: expected 26214400 as on rank 0, got 1000 on "
      "rank 1"));
  const auto first = option_disagreement(
      [](Options& options) { options.first_bucket_bytes(1000); });
  CHECK(contains(first, "option first_bucket_bytes"));
  const auto view = option_disagreement(
      [](Options& options) { options.gradient_as_bucket_view(false); });
  CHECK(contains(
      view,
      "option gradient_as_bucket_view: expected true as on rank 0, got false"));
  const auto buffers = option_disagreement(
      [](Options& options) { options.broadcast_buffers(false); });
  CHECK(contains(buffers, "option buffer_policy"));
}

} // namespace
} // namespace tandem::test
