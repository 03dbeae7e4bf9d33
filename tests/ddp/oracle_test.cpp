#include "support.h"

#include "tandem_catch.h"

#include <tandem/testing/c10d_reducer.h>

namespace tandem::test {
namespace {

at::Tensor train_with_oracle(
    Mlp net,
    const RankContext& context,
    int64_t steps,
    int64_t cap_bytes,
    at::ScalarType dtype) {
  testing::C10dReducer::Options options;
  options.first_bucket_bytes = cap_bytes;
  options.bucket_cap_bytes = cap_bytes;
  options.gradient_as_bucket_view = false;
  testing::C10dReducer reducer(net->parameters(), *context.group(), options);
  return train(
      [&](const at::Tensor& input) {
        reducer.before_forward();
        auto output = net(input);
        reducer.after_forward();
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
