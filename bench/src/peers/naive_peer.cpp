#include <tandem/comm/comm.h>

#include "peers/gradient_peer.h"

namespace tandem::bench {

namespace {

class NaivePeer final : public GradientPeer {
 public:
  explicit NaivePeer(const torch::nn::Module& net)
      : parameters_(net.parameters()) {}

  void after_backward() override {
    for (const auto& parameter : parameters_) {
      comm::default_group()->all_reduce(
          parameter.mutable_grad(),
          comm::ReduceOp::kMean);
    }
  }

 private:
  std::vector<at::Tensor> parameters_;
};

} // namespace

std::unique_ptr<GradientPeer> make_naive_peer(const torch::nn::Module& net) {
  return std::make_unique<NaivePeer>(net);
}

} // namespace tandem::bench
