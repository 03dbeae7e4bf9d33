#include <tandem/comm/comm.h>
#include <tandem/testing/c10d_reducer.h>

#include "peers/gradient_peer.h"

namespace tandem::bench {

namespace {

class C10dPeer final : public GradientPeer {
 public:
  C10dPeer(
      const torch::nn::Module& net,
      const testing::C10dReducer::Options& options)
      : reducer_(net.parameters(), *comm::default_group(), options) {}

  void before_forward() override {
    reducer_.before_forward();
  }
  void after_forward() override {
    reducer_.after_forward();
  }

 private:
  testing::C10dReducer reducer_;
};

} // namespace

std::unique_ptr<GradientPeer> make_c10d_peer(
    const torch::nn::Module& net,
    const BenchRecipe& recipe,
    bool gradient_as_bucket_view) {
  testing::C10dReducer::Options options;
  options.gradient_as_bucket_view = gradient_as_bucket_view;
  if (recipe.bucket_cap_bytes) {
    options.bucket_cap_bytes = *recipe.bucket_cap_bytes;
  }
  if (recipe.first_bucket_bytes) {
    options.first_bucket_bytes = *recipe.first_bucket_bytes;
  }
  return std::make_unique<C10dPeer>(net, options);
}

std::unique_ptr<GradientPeer> make_gradient_peer(
    TimedStrategy strategy,
    const torch::nn::Module& net,
    const BenchRecipe& recipe) {
  switch (strategy) {
    case TimedStrategy::kDDPC10d:
      return make_c10d_peer(net, recipe, /*gradient_as_bucket_view=*/false);
    case TimedStrategy::kDDPC10dViews:
      return make_c10d_peer(net, recipe, /*gradient_as_bucket_view=*/true);
    case TimedStrategy::kDDPNaive:
      return make_naive_peer(net);
    default:
      return nullptr;
  }
}

} // namespace tandem::bench
