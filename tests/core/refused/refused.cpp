// Compiled once per wrong use, each of which must be refused with a message a
// reader understands; without any of the macros it must compile.
#include <tandem/core/single_device.h>

struct Unknown {
  torch::Tensor inside;
};

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const Unknown& input) {
    return input.inside;
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return input;
  }
};
TORCH_MODULE(Net);

struct Pair {
  torch::Tensor first;
  torch::Tensor second;
};
#ifdef REFUSE_FORGOTTEN_FIELD
TANDEM_TREE_FIELDS(Pair, first)
#else
TANDEM_TREE_FIELDS(Pair, first, second)
#endif

void use() {
  Net net;
  tandem::SingleDevice model(net);
  model(torch::Tensor());
#ifdef REFUSE_UNKNOWN_TYPE
  model(Unknown());
#endif
#ifdef REFUSE_MODULE_BY_VALUE
  tandem::SingleDevice by_value(NetImpl{});
#endif
  const Pair pair{};
  tandem::tensors_in(pair);
}
