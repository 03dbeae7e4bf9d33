#include "device_sum.h"
#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;
using tandem::detail::move_together;

namespace {

std::vector<at::Tensor> gradients_of_three_shapes() {
  return {
      normal({2, 3}, 1),
      normal({}, 2),
      normal({4, 1, 2}, 3).transpose(0, 2)};
}

} // namespace

TEST_CASE(
    "tensors that move together keep shapes and values",
    "[dp][only-cpu]") {
  const auto tensors = gradients_of_three_shapes();
  const auto moved = move_together(tensors, at::kCPU);
  REQUIRE(moved.size() == 3);
  for (size_t index = 0; index < moved.size(); ++index) {
    CHECK(moved[index].sizes() == tensors[index].sizes());
    CHECK(moved[index].equal(tensors[index]));
  }
}

TEST_CASE("moved gradients hold no storage but their own", "[dp][only-cpu]") {
  const torch::NoGradGuard no_grad;
  for (auto& moved : move_together(gradients_of_three_shapes(), at::kCPU)) {
    CHECK(moved.storage().nbytes() == moved.nbytes());
    CHECK_NOTHROW(moved.detach_());
  }
}

TEST_CASE(
    "moving together is differentiable with grad mode on",
    "[dp][only-cpu]") {
  auto tensors = gradients_of_three_shapes();
  for (auto& tensor : tensors) {
    tensor.requires_grad_();
  }
  const auto moved = move_together(tensors, at::kCPU);
  (moved[0].sum() + 2 * moved[1] + moved[2].pow(2).sum()).backward();
  CHECK(tensors[0].grad().equal(torch::ones({2, 3}, at::kDouble)));
  CHECK(tensors[1].grad().item<double>() == 2);
  CHECK(tensors[2].grad().equal(2 * tensors[2].detach()));
}

TEST_CASE(
    "ordered sum moves to its device and adds in order",
    "[dp][only-cpu]") {
  const auto counts = std::make_shared<tandem::detail::TransferCounts>();
  const auto to_meta =
      tandem::detail::make_ordered_device_sum(at::kMeta, counts);
  for (const auto& moved : to_meta->bring(gradients_of_three_shapes())) {
    CHECK(moved.is_meta());
  }
  CHECK(counts->copies == 1);
  CHECK(counts->bytes == (6 + 1 + 8) * 8);

  const auto sum = tandem::detail::make_ordered_device_sum(at::kCPU, counts);
  // Only from left to right do these float additions lose the 1.
  const auto terms = {
      torch::tensor(1.0F),
      torch::tensor(1e8F),
      torch::tensor(-1e8F)};
  CHECK(sum->add(terms).item<float>() == 0);
  CHECK(counts->copies == 1);
}
