#include "support.h"

#include "tandem_catch.h"

#include <chrono>
#include <sstream>

namespace tandem::test {
namespace {

/// What wrapping throws when every rank wraps the module of `make()`.
template <typename Make>
std::string refusal(Make make, const Options& options = {}) {
  const auto errors = try_ranks(1, [&](RankContext&) {
    auto net = make();
    DistributedDataParallel model(net, options);
  });
  CHECK(is<ConfigError>(errors[0]));
  return text_of(errors[0]);
}

struct StateImpl : torch::nn::Module {
  explicit StateImpl(int64_t rank)
      : weight(register_parameter("weight", torch::full({3}, rank + 0.5))),
        frozen(register_parameter(
            "frozen",
            torch::full({2, 2}, rank + 0.25),
            /*requires_grad=*/false)),
        count(register_buffer("count", torch::full({2}, rank, at::kLong))),
        mask(register_buffer("mask", torch::full({3}, rank == 0, at::kBool))),
        phase(register_buffer(
            "phase",
            torch::full({2}, c10::complex<double>(1, double(rank))))) {}
  at::Tensor forward(const at::Tensor& input) {
    return weight * input;
  }
  at::Tensor weight, frozen, count, mask, phase;
};
TORCH_MODULE(State);

TEST_CASE("ranks start with rank 0's values", "[ddp][DDP-03]") {
  const auto nets = run_ranks(3, [](RankContext& context) {
    State net(context.rank());
    // Bit patterns that arithmetic would not keep.
    const torch::NoGradGuard no_grad;
    net->weight[0] = context.rank() == 0 ? NAN : 1.0;
    net->weight[1] = context.rank() == 0 ? -0.0 : 1.0;
    DistributedDataParallel model(net);
    return net;
  });
  const auto bits = [](const at::Tensor& tensor) {
    return tensor.detach().contiguous().view(at::kByte);
  };
  for (const auto& net : nets) {
    for (size_t i = 0; i < net->parameters().size(); ++i) {
      CHECK(torch::equal(
          bits(net->parameters()[i]),
          bits(nets[0]->parameters()[i])));
    }
    for (size_t i = 0; i < net->buffers().size(); ++i) {
      CHECK(torch::equal(bits(net->buffers()[i]), bits(nets[0]->buffers()[i])));
    }
  }
  CHECK(nets[2]->count[0].item<int64_t>() == 0);
  CHECK(std::isnan(nets[2]->weight[0].item<float>()));
}

TEST_CASE("a module with nothing to train is refused", "[ddp][DDP-05]") {
  const auto frozen = refusal([] {
    Scale net;
    net->weight.set_requires_grad(false);
    return net;
  });
  CHECK(contains(frozen, "got 1 frozen"));
  const auto empty = refusal([] { return torch::nn::Identity(); });
  CHECK(contains(empty, "got 0 frozen"));
}

struct LaterImpl : torch::nn::Module {
  explicit LaterImpl(const at::Tensor& start) {
    weight = register_parameter("weight", start, start.defined());
  }
  at::Tensor forward(const at::Tensor& input) {
    return weight * input;
  }
  at::Tensor weight;
};
TORCH_MODULE(Later);

TEST_CASE("a parameter without a tensor is refused by name", "[ddp][DDP-14]") {
  const auto undefined = refusal([] { return Later(at::Tensor()); });
  CHECK(contains(undefined, "'weight' undefined"));

  const auto errors = try_ranks(2, [](RankContext&) {
    Later net(torch::empty({0}));
    DistributedDataParallel model(net);
    net->weight.set_data(torch::ones({3}));
    model(torch::ones({3}));
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "parameter 'weight': expected Float [0]"));
    CHECK(contains(text_of(error), "got Float [3]"));
  }
}

TEST_CASE("a tensor on another device is refused by name", "[ddp][DDP-15]") {
  const auto meta = refusal([] {
    return torch::nn::Sequential(
        torch::nn::Linear(2, 2),
        Later(torch::empty({2}, at::kMeta)));
  });
  CHECK(contains(meta, "parameter '1.weight': expected on cpu, got meta"));
  const auto elsewhere = refusal(
      [] { return Scale(); },
      Options().device(at::Device(at::kMeta, 0)));
  CHECK(contains(elsewhere, "option device"));
}

struct TypedImpl : torch::nn::Module {
  explicit TypedImpl(at::ScalarType dtype) {
    weight = register_parameter("weight", torch::ones({2}).to(dtype));
  }
  at::Tensor forward(const at::Tensor& input) {
    return (weight * input).abs().square().sum();
  }
  at::Tensor weight;
};
TORCH_MODULE(Typed);

TEST_CASE("half, bfloat16 and complex are averaged", "[ddp][DDP-16]") {
  for (const auto dtype :
       {at::kHalf, at::kBFloat16, at::kComplexFloat, at::kComplexDouble}) {
    CAPTURE(dtype);
    const auto gradients = run_ranks(2, [&](RankContext& context) {
      Typed net(dtype);
      DistributedDataParallel model(net);
      // d|w x|^2 = 2 |x|^2 w: 2 and 8.
      const auto input = torch::full({2}, context.rank() + 1.0).to(dtype);
      model(input).backward();
      return net->weight.grad();
    });
    for (const auto& gradient : gradients) {
      CHECK(gradient.scalar_type() == dtype);
      CHECK(torch::equal(gradient, torch::full({2}, 5.0).to(dtype)));
    }
  }
}

TEST_CASE("a dtype that cannot be summed is refused", "[ddp][DDP-16]") {
  const auto text = refusal([] { return Typed(at::kFloat8_e4m3fn); });
  CHECK(contains(text, "parameter 'weight'"));
  CHECK(contains(text, "gloo"));
  CHECK(contains(text, "got Float8_e4m3fn"));
}

TEST_CASE("memory that elements share is refused by name", "[ddp]") {
  const auto text =
      refusal([] { return Later(torch::ones({1}).expand({4}).detach()); });
  CHECK(contains(text, "parameter 'weight'"));
}

TEST_CASE("a bucket of no bytes is refused", "[ddp]") {
  const auto text =
      refusal([] { return Scale(); }, Options().bucket_cap_bytes(0));
  CHECK(contains(text, "option bucket_cap_bytes: expected at least 1"));
}

TEST_CASE("one rank's refusal reaches all within 2 s", "[ddp][DDP-05]") {
  std::vector<double> seconds(3);
  const auto errors = try_ranks(3, [&](RankContext& context) {
    Scale net;
    net->weight.set_requires_grad(context.rank() != 1);
    const auto begin = std::chrono::steady_clock::now();
    try {
      DistributedDataParallel model(net);
    } catch (...) {
      seconds[static_cast<size_t>(context.rank())] =
          std::chrono::duration<double>(
              std::chrono::steady_clock::now() - begin)
              .count();
      throw;
    }
  });
  CHECK(is<ConfigError>(errors[1]));
  for (const size_t other : {0, 2}) {
    CHECK(is<PeerError>(errors[other]));
    CHECK(contains(text_of(errors[other]), "rank 1"));
    CHECK(contains(text_of(errors[other]), "requires grad"));
  }
  for (const double elapsed : seconds) {
    CHECK(elapsed < 2.0);
  }
}

TEST_CASE("conversion after wrapping is refused", "[ddp]") {
  run_ranks(2, [](RankContext&) {
    Mlp net;
    DistributedDataParallel model(net);
    model->to(at::kDouble);
    model->to(at::kCPU);
    model->to(at::Device(at::kCPU), at::kDouble);
    try {
      model->to(at::kFloat);
      TORCH_CHECK(false, "to(float) was accepted");
    } catch (const ConfigError& error) {
      TORCH_CHECK(contains(error.what(), "'net.0.weight': expected Double"));
    }
    TORCH_CHECK(net->parameters()[0].scalar_type() == at::kDouble);
  });
}

TEST_CASE("conversion behind the wrapper is found at the forward", "[ddp]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Scale net;
    DistributedDataParallel model(net);
    net->to(at::kDouble);
    model(net->input(1));
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "parameter 'weight': expected Float [1]"));
    CHECK(contains(text_of(error), "got Double [1]"));
  }
}

TEST_CASE("a parameter unfrozen after wrapping is named", "[ddp]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Towers net;
    net->right->weight.set_requires_grad(false);
    DistributedDataParallel model(net);
    net->right->weight.set_requires_grad(true);
    model(net->left->input(1));
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "parameter 'right.weight'"));
  }
}

TEST_CASE("a loaded checkpoint trains on", "[ddp]") {
  Mlp saved;
  fill(*saved, 99);
  std::ostringstream stream;
  torch::save(saved, stream);
  const auto expected = train_alone(saved, 3);
  const auto ranks = run_ranks(2, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    std::istringstream input(stream.str());
    torch::load(model, input);
    return train(
        [&](const at::Tensor& batch) { return model(batch); },
        *net,
        &context,
        3);
  });
  for (const auto& rank : ranks) {
    CHECK(torch::allclose(rank, expected, 1e-10, 1e-10));
  }
}

TEST_CASE("description tells world, backend, buckets and flags", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(
        net,
        Options()
            .first_bucket_bytes(1)
            .bucket_cap_bytes(2000)
            .gradient_as_bucket_view(false)
            .broadcast_buffers(false));
    for (const auto& part :
         {std::to_string(context.rank()) + " of 2",
          std::string("on cpu over gloo"),
          std::string("6 parameters (6272 bytes)"),
          std::string("in 4 buckets of 32, 2000, 4000, 240 bytes"),
          std::string("copied from the buckets"),
          std::string("each rank's own")}) {
      TORCH_CHECK(
          contains(model->describe(), part),
          part,
          ": ",
          model->describe());
    }
  });
}

} // namespace
} // namespace tandem::test
