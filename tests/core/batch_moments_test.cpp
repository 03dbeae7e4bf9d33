#include <vector>

#include <torch/torch.h>

#include <tandem/core/batch_moments.h>
#include <tandem/core/statistics_group.h>

#include "tandem_catch.h"
#include "tensors.h"

using namespace tandem::test;
using tandem::BatchMoments;

namespace {

at::Tensor packed_parts(const std::vector<at::Tensor>& parts) {
  std::vector<at::Tensor> packed;
  packed.reserve(parts.size());
  for (const auto& part : parts) {
    packed.push_back(tandem::moments_of(part).packed);
  }
  return at::stack(packed);
}

class NoGroup final : public tandem::StatisticsGroup {
 public:
  BatchMoments combine(const torch::nn::Module&, const BatchMoments& own)
      override {
    return own;
  }
};

} // namespace

TEST_CASE("moments are of all dimensions but the channels", "[core]") {
  // Channel 0 holds 1, 2, 3, 6; channel 1 holds 5 four times.
  const auto input = torch::tensor({1., 2., 5., 5., 3., 6., 5., 5.})
                         .to(torch::kDouble)
                         .view({2, 2, 2});
  const auto moments = tandem::moments_of(input);
  CHECK(moments.count().item<double>() == 4);
  CHECK(is_equal(moments.mean(), torch::tensor({3., 5.}, torch::kDouble)));
  CHECK(is_equal(moments.m2(), torch::tensor({14., 0.}, torch::kDouble)));
}

TEST_CASE("moments of no rows are zeros", "[core]") {
  const auto moments = tandem::moments_of(torch::zeros({0, 3, 2}));
  CHECK(is_equal(moments.packed, torch::zeros({7})));
  const auto none = tandem::combine_moments(moments.packed.repeat({2, 1}));
  CHECK(is_equal(none.packed, torch::zeros({7})));
}

TEST_CASE("moments of narrow types are kept in float", "[core]") {
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const auto moments = tandem::moments_of(torch::ones({3, 2}, dtype));
    CHECK(moments.packed.scalar_type() == at::kFloat);
  }
}

TEST_CASE("moments of uneven parts combine to the whole's", "[core]") {
  const auto whole = normal({11, 3, 2}, 1);
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{11}, {1, 10}, {4, 0, 6, 1}}) {
    const auto combined =
        tandem::combine_moments(packed_parts(whole.split_with_sizes(sizes)));
    CHECK(is_close(combined.packed, tandem::moments_of(whole).packed, 1e-12));
  }
}

TEST_CASE("a large mean costs the spread no digits", "[core]") {
  const auto small = normal({64, 3}, 1);
  const auto far = (small + 1e4).to(torch::kFloat);
  const auto combined =
      tandem::combine_moments(packed_parts(far.split_with_sizes({1, 23, 40})));
  // The shifted values themselves are rounded to 1e4 * 2^-24.
  const auto expected = far.to(torch::kDouble);
  const auto m2 = tandem::moments_of(expected).m2();
  CHECK(combined.m2().to(torch::kDouble).allclose(m2, 1e-4));
}

TEST_CASE("moments have the derivatives of plain operators", "[core]") {
  const auto weights = normal({4}, 2);
  const auto derivatives = [&](bool plain) {
    auto input = normal({5, 2, 3}, 1).requires_grad_();
    at::Tensor mean;
    at::Tensor m2;
    if (plain) {
      mean = input.mean(at::IntArrayRef{0, 2});
      m2 = (input - mean.view({1, 2, 1})).square().sum(at::IntArrayRef{0, 2});
    } else {
      const auto moments = tandem::moments_of(input);
      mean = moments.mean();
      m2 = moments.m2();
    }
    const auto value = (at::cat({mean.square(), m2.square()}) * weights).sum();
    const auto first = torch::autograd::grad(
        {value},
        {input},
        /*grad_outputs=*/{},
        /*retain_graph=*/true,
        /*create_graph=*/true);
    const auto second =
        torch::autograd::grad({first[0].square().sum()}, {input});
    return std::vector<at::Tensor>{first[0].detach(), second[0]};
  };
  CHECK(are_close(derivatives(false), derivatives(true), 1e-12));
}

TEST_CASE("statistics scope belongs to its thread and nests", "[core]") {
  NoGroup outer;
  NoGroup inner;
  CHECK(tandem::StatisticsScope::current() == nullptr);
  {
    const tandem::StatisticsScope scope(&outer);
    {
      const tandem::StatisticsScope nested(&inner);
      CHECK(tandem::StatisticsScope::current() == &inner);
    }
    CHECK(tandem::StatisticsScope::current() == &outer);
    tandem::StatisticsGroup* seen = &outer;
    std::thread([&] { seen = tandem::StatisticsScope::current(); }).join();
    CHECK(seen == nullptr);
  }
  CHECK(tandem::StatisticsScope::current() == nullptr);
}
