#include <tandem/core/errors.h>
#include <tandem/sim/sim.h>

#include <torch/library.h>

#include <tandem/testing/error_text.h>

#include "support.h"
#include "tandem_catch.h"
#include "warnings.h"

namespace tandem::sim_test {

namespace {

at::Tensor twice(const at::Tensor& tensor) {
  return tensor * 2;
}

void check_unsupported(
    const std::function<void()>& function,
    const std::vector<std::string>& parts) {
  const auto text =
      testing::thrown_text<Error>(function).value_or("nothing thrown");
  INFO(text);
  CHECK(testing::missing_parts(text, parts).empty());
}

} // namespace

TEST_CASE(
    "every operator that has a kernel for the CPU has one for sim",
    "[sim]") {
  start_devices();
  auto& dispatcher = c10::Dispatcher::singleton();
  int64_t num_operators = 0;
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (!op || !name.name.starts_with("aten::")) {
      continue;
    }
    using c10::DispatchKey;
    for (const auto& [cpu, sim] :
         {std::pair(DispatchKey::CPU, DispatchKey::PrivateUse1),
          std::pair(DispatchKey::SparseCPU, DispatchKey::SparsePrivateUse1)}) {
      if (op->hasKernelForDispatchKey(cpu)) {
        INFO(name);
        CHECK(op->hasKernelForDispatchKey(sim));
        ++num_operators;
      }
    }
  }
  CHECK(num_operators > 1000);
}

TEST_CASE("an operator that is added later runs on sim devices", "[sim]") {
  start_devices();
  torch::Library definitions(
      torch::Library::DEF,
      "tandem_test",
      std::nullopt,
      __FILE__,
      __LINE__);
  definitions.def("twice(Tensor tensor) -> Tensor");
  definitions.impl("twice", c10::DispatchKey::CPU, &twice);
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("tandem_test::twice", "")
                      .typed<at::Tensor(const at::Tensor&)>();
  const auto result = op.call(torch::ones({3}, sim::device(2)));
  CHECK(result.device() == sim::device(2));
  CHECK(same_bits(result, torch::full({3}, 2.0F)));
}

TEST_CASE("a lazy copy on a device ends with the first write", "[sim]") {
  start_devices();
  const auto tensor = torch::ones({3}, sim::device(1));
  const auto copy = at::_lazy_clone(tensor);
  CHECK(copy.device() == sim::device(1));
  copy.add_(1);
  CHECK(same_bits(tensor, torch::ones({3})));
  CHECK(same_bits(copy, torch::full({3}, 2.0F)));
}

TEST_CASE("complex parameters have the CPU's gradients", "[sim]") {
  start_devices();
  const auto values = torch::complex(normal({3, 3}, 1), normal({3, 3}, 2));
  const auto gradient_on = [&](at::Device device) {
    const auto z = values.to(device).detach().requires_grad_();
    torch::log(z.mm(z.conj()).abs() + 1).sum().backward();
    return z.grad();
  };
  CHECK(same_bits(gradient_on(sim::device(1)), gradient_on(at::kCPU)));
}

TEST_CASE("other layouts and unknown addresses are refused", "[sim]") {
  start_devices();
  test::expect_warning("Sparse CSR tensor support is in beta state");
  const auto tensor = torch::eye(3).to(sim::device(0));
  check_unsupported(
      [&] { tensor.to_sparse_csr(); },
      {"sim:0", "Strided or Sparse", "SparseCsr"});
  std::vector<float> host(4);
  check_unsupported(
      [&] { torch::from_blob(host.data(), {4}, at::Device("sim")); },
      {"from_blob", "sim:0"});
}

} // namespace tandem::sim_test
