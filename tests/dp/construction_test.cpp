#include <fstream>
#include <thread>

#include <tandem/core/errors.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;
using tandem::ConfigError;
using tandem::DataParallelOptions;

namespace dp_construction {

struct PlainModuleImpl : torch::nn::Module {
  explicit PlainModuleImpl(
      int64_t width = 3,
      const at::Tensor& given_scale = torch::full({1}, 2.0)) {
    linear = register_module("linear", torch::nn::Linear(width, 2));
    scale = register_buffer("scale", given_scale);
  }
  at::Tensor forward(const at::Tensor& input) {
    return linear(input) * scale;
  }
  torch::nn::Linear linear{nullptr};
  at::Tensor scale;
};
TORCH_MODULE(PlainModule);

struct PlainChildImpl : torch::nn::Cloneable<PlainChildImpl> {
  PlainChildImpl() {
    reset();
  }
  void reset() override {
    plain = register_module("plain", PlainModule());
  }
  at::Tensor forward(const at::Tensor& input) {
    return plain->forward(input);
  }
  PlainModule plain{nullptr};
};

struct RegistersLateImpl : torch::nn::Cloneable<RegistersLateImpl> {
  RegistersLateImpl() {
    reset();
    late = register_module("late", torch::nn::Linear(3, 2));
  }
  void reset() override {}
  at::Tensor forward(const at::Tensor& input) {
    return late(input);
  }
  torch::nn::Linear late{nullptr};
};

struct HoldsLateImpl : torch::nn::Cloneable<HoldsLateImpl> {
  HoldsLateImpl() {
    reset();
  }
  void reset() override {
    child = register_module("child", std::make_shared<RegistersLateImpl>());
  }
  at::Tensor forward(const at::Tensor& input) {
    return child->forward(input);
  }
  std::shared_ptr<RegistersLateImpl> child;
};

/// Has a part on the meta device.
struct PartlyOnMetaImpl : torch::nn::Cloneable<PartlyOnMetaImpl> {
  explicit PartlyOnMetaImpl(bool parameter) : is_parameter(parameter) {
    reset();
  }
  void reset() override {
    register_parameter("first", torch::ones({2}));
    const auto elsewhere = torch::ones({2}, at::kMeta);
    if (is_parameter) {
      register_parameter("second", elsewhere);
    } else {
      register_buffer("third", elsewhere);
    }
  }
  at::Tensor forward(const at::Tensor& input) {
    return input;
  }
  bool is_parameter;
};

int64_t num_threads_of_process() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("Threads:")) {
      return std::stoll(line.substr(8));
    }
  }
  return 0;
}

DataParallelOptions made_by(tandem::ReplicaFactory factory) {
  return on_devices(2).replica_factory(std::move(factory));
}

template <typename M>
std::string refusal(
    const std::shared_ptr<M>& net,
    const DataParallelOptions& options) {
  const auto threads = num_threads_of_process();
  auto message =
      message_thrown_by([&] { tandem::DataParallel model(net, options); });
  CHECK_THROWS_AS(tandem::DataParallel(net, options), ConfigError);
  CHECK(num_threads_of_process() == threads);
  return message;
}

} // namespace dp_construction

using namespace dp_construction;

TEST_CASE(
    "device lists that make no sense are refused",
    "[dp][DP-36][only-cpu]") {
  const auto net = make_net<ConvLinearImpl>(1);
  const auto refused = [&](const DataParallelOptions& options) {
    return refusal(net, options);
  };
  CHECK(contains(refused(cpus(0)), "empty list"));
  CHECK(contains(refused(cpus(2).device_ids({0, 1})), "got both"));
  CHECK(contains(
      refused(DataParallelOptions().devices({at::kCPU, at::kMeta})),
      "of one type"));
  CHECK(contains(refused(DataParallelOptions().device_ids({100})), "got 100"));
  CHECK(contains(
      refused(DataParallelOptions().devices({at::Device(at::kCUDA, 100)})),
      "cuda:100"));
  CHECK(contains(
      refused(cpus(2).output_device(at::Device(at::kCUDA, 100))),
      "output_device"));
  CHECK(contains(
      refused(DataParallelOptions().devices(
          {at::Device(at::kMeta, 0), at::Device(at::kMeta, 0)})),
      "twice"));
}

TEST_CASE("options out of range are refused", "[dp][DP-36][only-cpu]") {
  const auto net = make_net<ConvLinearImpl>(1);
  CHECK(contains(refusal(net, cpus(2).dim(-1)), "dim"));
  CHECK(
      contains(refusal(net, cpus(2).bucket_cap_bytes(0)), "bucket_cap_bytes"));
}

TEST_CASE("without CUDA the devices must be given", "[dp][DP-36][only-cpu]") {
  if (torch::cuda::is_available()) {
    TANDEM_SKIP("there is a CUDA device");
  }
  const auto message =
      refusal(make_net<ConvLinearImpl>(1), DataParallelOptions());
  CHECK(contains(message, "devices"));
  CHECK(contains(message, "torch::kCPU"));
}

TEST_CASE(
    "tensors off the first device are refused by name",
    "[dp][DP-34][only-cpu]") {
  for (const size_t devices : {1, 2}) {
    const auto parameter =
        refusal(std::make_shared<PartlyOnMetaImpl>(true), cpus(devices));
    CHECK(contains(parameter, "parameter 'second'"));
    CHECK(contains(parameter, "expected on cpu"));
    CHECK(contains(parameter, "got meta"));
    const auto buffer =
        refusal(std::make_shared<PartlyOnMetaImpl>(false), cpus(devices));
    CHECK(contains(buffer, "buffer 'third'"));
  }
  const auto on_meta = DataParallelOptions().devices({at::Device(at::kMeta)});
  const auto first_wrong = refusal(make_net<ConvLinearImpl>(1), on_meta);
  CHECK(contains(first_wrong, "parameter 'conv.weight'"));
  CHECK(contains(first_wrong, "expected on meta"));
}

TEST_CASE(
    "parameter or buffer on another device is refused by name",
    "[dp][DP-34][only-sim]") {
  const auto pair = devices(2);
  for (const size_t count : {1, 2, 4}) {
    for (const auto& elsewhere : {pair[1], at::Device(at::kCPU)}) {
      for (const bool is_parameter : {true, false}) {
        const auto net = make_base<NormDropoutImpl>(1);
        auto& tensor = is_parameter ? net->norm->bias : net->norm->running_var;
        tensor.set_data(tensor.to(elsewhere));
        const auto message = refusal(net, on_devices(count));
        CHECK(contains(
            message,
            is_parameter ? "parameter 'norm.bias'"
                         : "buffer 'norm.running_var'"));
        CHECK(contains(message, "expected on " + pair[0].str()));
        CHECK(contains(message, "got " + elsewhere.str()));
      }
    }
  }
}

TEST_CASE(
    "module that is not on the first device is refused",
    "[dp][DP-34][only-sim]") {
  const auto pair = devices(2);
  const auto net = make_base<ConvLinearImpl>(1);
  const std::vector<at::Device> reversed{pair[1], pair[0]};
  const auto message = refusal(net, on_devices(2).devices(reversed));
  CHECK(contains(message, "parameter 'conv.weight'"));
  CHECK(contains(message, "expected on " + pair[1].str()));
  CHECK(contains(message, "got " + pair[0].str()));
}

TEST_CASE("replicas have the values in storage of their own", "[dp][DP-22]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 3, 4);
  tandem::DataParallel model(net, on_devices(3));
  CHECK(model->replica(0) == net);
  CHECK(model->num_replicas() == 3);
  for (const size_t index : {1, 2}) {
    const auto replica = model->replica(index);
    CHECK(is_equal(replica->weight, net->weight));
    CHECK(replica->weight.device() == devices(3)[index]);
    CHECK_FALSE(replica->weight.is_alias_of(net->weight));
    CHECK_FALSE(replica->weight.is_alias_of(model->replica(3 - index)->weight));
    const auto before = net->weight.detach().clone();
    {
      const torch::NoGradGuard no_grad;
      replica->weight.zero_();
    }
    CHECK(net->weight.equal(before));
  }
}

TEST_CASE("one device calls the module itself", "[dp][DP-35]") {
  const auto net = make_base<torch::nn::BatchNorm1dImpl>(1, 3);
  const auto plain = make_base<torch::nn::BatchNorm1dImpl>(1, 3);
  const auto threads = num_threads_of_process();
  tandem::DataParallel model(net, on_devices(1));
  const auto input = normal({4, 3}, 2).to(device());
  CHECK(is_equal(model(input), plain->forward(input)));
  CHECK(is_equal(net->running_mean, plain->running_mean));
  CHECK(net->num_batches_tracked.item<int64_t>() == 1);
  CHECK(num_threads_of_process() == threads);
  CHECK(model->counters().copies == 0);
  const auto same = [](const at::Tensor& tensor) { return tensor; };
  CHECK(wrap_function(same, on_devices(1))(input).is_same(input));
  // No clone(): a module that cannot be cloned is fine.
  const auto not_cloneable = on_first(std::make_shared<PlainModuleImpl>());
  tandem::DataParallel alone(not_cloneable, on_devices(1));
  CHECK(alone(torch::ones({2, 3})).size(0) == 2);
}

TEST_CASE("module that cannot be cloned is refused by type", "[dp][DP-50]") {
  const auto plain =
      refusal(on_first(std::make_shared<PlainModuleImpl>()), on_devices(2));
  CHECK(contains(plain, "PlainModuleImpl"));
  CHECK(contains(plain, "replica_factory"));

  const auto late =
      refusal(on_first(std::make_shared<RegistersLateImpl>()), on_devices(2));
  CHECK(contains(late, "RegistersLateImpl"));
  CHECK(contains(late, "reset()"));

  const auto child =
      refusal(on_first(std::make_shared<HoldsLateImpl>()), on_devices(2));
  CHECK(contains(child, "'child'"));
  CHECK(contains(child, "RegistersLateImpl"));

  const torch::nn::Sequential sequential(
      torch::nn::Linear(3, 3),
      PlainModule());
  const auto inside = refusal(on_first(sequential.ptr()), on_devices(2));
  CHECK(contains(inside, "'1'"));
  CHECK(contains(inside, "PlainModuleImpl"));
}

TEST_CASE("what clone() gets wrong silently is put right", "[dp]") {
  // A plain child keeps the fresh weights that reset() gave it.
  const auto net = make_base<PlainChildImpl>(1);
  net->plain->linear->weight.set_requires_grad(false);
  net->plain->linear->eval();
  tandem::DataParallel model(net, on_devices(2));
  const auto replica = model->replica(1);
  CHECK(is_equal(replica->plain->linear->weight, net->plain->linear->weight));
  CHECK(replica->plain->scale.scalar_type() == at::kDouble);
  CHECK_FALSE(replica->plain->linear->weight.requires_grad());
  CHECK(replica->plain->linear->bias.requires_grad());
  CHECK_FALSE(replica->plain->linear->is_training());
  CHECK(replica->plain->is_training());
  const auto input = normal({5, 3}, 2);
  CHECK(is_close(model(input), net->forward(input.to(device()))));
}

TEST_CASE("factory makes replicas of a module without clone()", "[dp]") {
  const auto net = make_base<PlainModuleImpl>(1);
  std::vector<at::Device> asked;
  tandem::DataParallel model(net, made_by([&](at::Device device) {
                               asked.push_back(device);
                               return std::make_shared<PlainModuleImpl>();
                             }));
  CHECK(asked == std::vector<at::Device>{devices(2)[1]});
  const auto input = normal({5, 3}, 2);
  const auto output = model(input);
  CHECK(is_close(output, net->forward(input.to(device()))));
  output.sum().backward();
  CHECK(
      is_close(net->linear->bias.grad(), torch::full({2}, 10.0, at::kDouble)));
}

TEST_CASE("replica that differs is refused by name", "[dp]") {
  const auto net = make_base<PlainModuleImpl>(1);
  const auto refused = [&](const tandem::ReplicaFactory& factory) {
    return refusal(net, made_by(factory));
  };
  const auto null = refused([](at::Device) { return nullptr; });
  CHECK(contains(null, "replica 1"));
  CHECK(contains(null, "null"));

  const auto shape =
      refused([](at::Device) { return std::make_shared<PlainModuleImpl>(7); });
  CHECK(contains(shape, "'linear.weight'"));
  CHECK(contains(shape, "[2, 3]"));
  CHECK(contains(shape, "[2, 7]"));

  const auto type =
      refused([](at::Device) { return torch::nn::Linear(3, 2).ptr(); });
  CHECK(contains(type, "PlainModuleImpl"));
  CHECK(contains(type, "LinearImpl"));

  const auto extra = refused([](at::Device) {
    auto module = std::make_shared<PlainModuleImpl>();
    module->register_parameter("extra", torch::ones({1}));
    return module;
  });
  CHECK(contains(extra, "'extra'"));

  net->register_buffer("more", torch::ones({1}));
  const auto missing =
      refused([](at::Device) { return std::make_shared<PlainModuleImpl>(); });
  CHECK(contains(missing, "'more'"));
}

TEST_CASE("replica that shares modules or tensors is refused", "[dp]") {
  const auto net = make_base<PlainModuleImpl>(1);
  const auto itself = refusal(net, made_by([&](at::Device) {
                                return net->shared_from_this();
                              }));
  CHECK(contains(itself, "deep copy"));

  const auto shared_child =
      refusal(net, made_by([&](at::Device) {
                return std::make_shared<PlainModuleImpl>(*net);
              }));
  CHECK(contains(shared_child, "'linear'"));

  const auto shared_tensor =
      refusal(net, made_by([&](at::Device) {
                return std::make_shared<PlainModuleImpl>(3, net->scale);
              }));
  CHECK(contains(shared_tensor, "buffer 'scale'"));

  const auto same_twice = std::make_shared<PlainModuleImpl>();
  const auto twice =
      refusal(net, on_devices(3).replica_factory([&](at::Device) {
        return same_twice->shared_from_this();
      }));
  CHECK(contains(twice, "replica 2"));
}

TEST_CASE("wrapping leaves the random generator alone", "[dp]") {
  torch::manual_seed(5);
  const auto net = on_first(std::make_shared<ConvLinearImpl>());
  const auto state = at::detail::getDefaultCPUGenerator().get_state();
  tandem::DataParallel model(net, on_devices(3));
  const auto threw = message_thrown_by([&] {
    tandem::DataParallel(net, made_by([](at::Device) {
                           return torch::nn::Linear(3, 2).ptr();
                         }));
  });
  CHECK_FALSE(threw.empty());
  CHECK(at::detail::getDefaultCPUGenerator().get_state().equal(state));
}

TEST_CASE("threads end with the wrapper", "[dp][DP-52]") {
  const auto net = make_base<ConvLinearImpl>(1);
  std::thread([] {}).join(); // with the first comes ThreadSanitizer's own
  const auto threads = num_threads_of_process();
  {
    tandem::DataParallel model(net, on_devices(4));
    CHECK(num_threads_of_process() == threads + 3);
  }
  CHECK(num_threads_of_process() == threads);
}
