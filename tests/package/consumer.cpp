// A user's program: wraps a model both ways and compares one step.
#include <tandem/tandem.h>

#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

int main() {
  torch::nn::Linear net(4, 2);
  const auto input = torch::ones({6, 4});
  const auto expected = net(input);

  tandem::SingleDevice single(net);
  const std::vector<torch::Device> devices(2, torch::kCPU);
  tandem::DataParallel both(
      net,
      tandem::DataParallelOptions().devices(devices));
  const bool same = torch::allclose(single(input), expected) &&
      torch::allclose(both(input), expected);
  std::cout << (same ? "equal\n" : "different\n");
  return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
