#include "support.h"

#include "tandem_catch.h"

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace tandem::test {
namespace {

using Tensors = std::vector<at::Tensor>;
using Buckets = std::vector<std::vector<size_t>>;

/// `c10d::Reducer`; its constructor has one argument more in newer versions.
template <typename R = c10d::Reducer>
std::shared_ptr<R> make_reducer(
    Tensors parameters,
    Buckets buckets,
    const RankContext& context,
    int64_t cap_bytes) {
  std::unordered_map<size_t, std::string> names;
  for (size_t i = 0; i < parameters.size(); ++i) {
    names[i] = std::to_string(i);
  }
  std::vector<bool> sparse(parameters.size(), false);
  const auto make = [&](const auto&... last) {
    return std::make_shared<R>(
        std::move(parameters),
        std::move(buckets),
        context.group()->c10d_group(),
        std::move(sparse),
        cap_bytes,
        /*find_unused_parameters=*/false,
        /*gradient_as_bucket_view=*/false,
        std::move(names),
        cap_bytes,
        /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false,
        last...);
  };
  if constexpr (std::is_constructible_v<
                    R,
                    Tensors,
                    Buckets,
                    c10::intrusive_ptr<c10d::ProcessGroup>,
                    std::vector<bool>,
                    int64_t,
                    bool,
                    bool,
                    std::unordered_map<size_t, std::string>,
                    int64_t,
                    bool,
                    bool,
                    std::vector<int64_t>>) {
    return make(std::vector<int64_t>());
  } else {
    return make();
  }
}

at::Tensor train_with_oracle(
    Mlp net,
    const RankContext& context,
    int64_t steps,
    int64_t cap_bytes,
    at::ScalarType dtype) {
  auto parameters = net->parameters();
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, {size_t(cap_bytes)});
  std::reverse(buckets.begin(), buckets.end());
  auto reducer = make_reducer(parameters, buckets, context, cap_bytes);
  auto logger = std::make_shared<c10d::Logger>(reducer);
  reducer->set_logger(logger);
  logger->set_construction_data_and_log("Mlp", {}, -1, false, false, false);
  return train(
      [&](const at::Tensor& input) {
        reducer->prepare_for_forward();
        reducer->rebuild_buckets();
        auto output = net(input);
        reducer->prepare_for_backward({});
        return output;
      },
      *net,
      &context,
      steps,
      dtype);
}

TEST_CASE("two ranks equal c10d::Reducer bit for bit", "[ddp][oracle]") {
  constexpr int64_t num_steps = 6;
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t cap_bytes : {512, 1 << 20}) {
      const auto pairs = run_ranks(2, [&](RankContext& context) {
        context.doing("c10d::Reducer");
        const auto expected =
            train_with_oracle(Mlp(dtype), context, num_steps, cap_bytes, dtype);
        context.doing("tandem's reducer");
        const auto trained = train_as_rank(
            Mlp(dtype),
            context,
            num_steps,
            Options().first_bucket_bytes(cap_bytes).bucket_cap_bytes(cap_bytes),
            dtype);
        return std::make_pair(trained, expected);
      });
      for (const auto& [trained, expected] : pairs) {
        CHECK(torch::equal(trained, expected));
      }
    }
  }
}

} // namespace
} // namespace tandem::test
