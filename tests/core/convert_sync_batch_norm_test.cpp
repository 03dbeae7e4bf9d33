#include <tandem/core/convert_sync_batch_norm.h>
#include <tandem/core/errors.h>
#include <tandem/core/sync_batch_norm.h>

#include <torch/torch.h>

#include "tandem_catch.h"
#include "tensors.h"
#include "text.h"

using namespace tandem::test;
using tandem::convert_sync_batch_norm;
using tandem::SyncBatchNormImpl;
using torch::nn::BatchNorm1dOptions;

namespace {

/// Norms of all kinds below several levels, one of them twice.
torch::nn::Sequential net_with_norms() {
  torch::nn::Sequential inner;
  inner->push_back(torch::nn::BatchNorm2d(4));
  torch::nn::ModuleDict dict;
  dict->update({{"third", torch::nn::BatchNorm3d(5).ptr()}});
  torch::nn::ModuleList list(
      torch::nn::BatchNorm1d(BatchNorm1dOptions(3).eps(0.5).affine(false)));
  torch::nn::Sequential net(torch::nn::Linear(3, 3));
  torch::nn::BatchNorm1d tied(
      BatchNorm1dOptions(3).momentum(std::nullopt).track_running_stats(false));
  net->push_back("tied", tied);
  net->push_back("again", tied);
  net->register_module("inner", inner);
  net->register_module("dict", dict);
  net->register_module("list", list);
  return net;
}

size_t count_synced(const torch::nn::Module& module) {
  size_t count = 0;
  for (const auto& child : module.modules(/*include_self=*/false)) {
    count += child->as<SyncBatchNormImpl>() != nullptr ? 1 : 0;
  }
  return count;
}

struct WithMemberImpl : torch::nn::Module {
  torch::nn::Sequential free =
      register_module("free", torch::nn::Sequential(torch::nn::BatchNorm1d(3)));
  torch::nn::BatchNorm1d held =
      register_module("held", torch::nn::BatchNorm1d(3));
};

} // namespace

TEST_CASE("conversion reaches every container", "[core][SBN-07]") {
  auto net = net_with_norms();
  net->eval();
  const auto names = net->named_parameters().keys();
  const auto buffer_names = net->named_buffers().keys();
  const auto parameters = net->parameters();
  CHECK(convert_sync_batch_norm(net) == net.ptr());
  CHECK(count_synced(*net) == 5);
  CHECK(net->named_parameters().keys() == names);
  CHECK(net->named_buffers().keys() == buffer_names);
  const auto after = net->parameters();
  REQUIRE(after.size() == parameters.size());
  for (size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i].is_same(parameters[i]));
  }
  CHECK(net->ptr(1) == net->ptr(2));
  CHECK_FALSE(net->ptr(1)->is_training());
  const auto& options = net->ptr(1)->as<SyncBatchNormImpl>()->options;
  CHECK_FALSE(options.momentum().has_value());
  CHECK_FALSE(options.track_running_stats());
  const auto list =
      net->named_children()["list"]->as<torch::nn::ModuleListImpl>();
  CHECK(list->ptr(0)->as<SyncBatchNormImpl>()->options.eps() == 0.5);
  const auto dict =
      net->named_children()["dict"]->as<torch::nn::ModuleDictImpl>();
  CHECK((*dict)["third"]->as<SyncBatchNormImpl>() != nullptr);
}

TEST_CASE("a converted Sequential calls the new layers", "[core][SBN-07]") {
  for (const auto dtype : {at::kDouble, at::kHalf}) {
    torch::nn::Sequential net(torch::nn::BatchNorm1d(3));
    net->to(dtype);
    fill(*net, 3);
    const auto mean = net->named_buffers()["0.running_mean"];
    const auto input = normal({4, 3}, 1, dtype);
    net->eval();
    const auto expected = net->forward(input);
    net->train();
    convert_sync_batch_norm(net);
    net->forward(input);
    CHECK(
        net->ptr(0)
            ->as<SyncBatchNormImpl>()
            ->num_batches_tracked.item<int64_t>() == 1);
    CHECK(mean.data_ptr() == net->named_buffers()["0.running_mean"].data_ptr());
    CHECK(mean.abs().sum().item<double>() > 0);
    mean.zero_();
    net->named_buffers()["0.running_var"].fill_(1);
    net->eval();
    CHECK(is_equal(net->forward(input), expected));
  }
}

TEST_CASE("a BatchNorm itself is answered by its successor", "[core][SBN-07]") {
  torch::nn::BatchNorm1d norm(3);
  const auto synced = convert_sync_batch_norm(norm);
  REQUIRE(synced->as<SyncBatchNormImpl>() != nullptr);
  CHECK(synced->as<SyncBatchNormImpl>()->weight.is_same(norm->weight));
}

TEST_CASE("layers that members hold are refused by name", "[core][SBN-07]") {
  const auto net = std::make_shared<WithMemberImpl>();
  const auto message = message_thrown_by([&] { convert_sync_batch_norm(net); });
  CHECK(contains(message, "'held'"));
  CHECK_FALSE(contains(message, "'free"));
  CHECK_THROWS_AS(convert_sync_batch_norm(net), tandem::ConfigError);
  CHECK(count_synced(*net) == 0);
}
