#include "registrations.h"

#include <torch/library.h>

#include "cpu_kernel.h"
#include "kernels.h"

namespace tandem::sim {

namespace {

using c10::DispatchKey;

// Composite operators that choose a kernel by the device.
const std::set<std::string> kWholeOnCpu{"convolution", "convolution_backward"};

torch::Library& library(const std::string& name_space, DispatchKey key) {
  return *new torch::Library(
      torch::Library::IMPL,
      name_space,
      key,
      __FILE__,
      __LINE__);
}

/// "add.Tensor" of "aten::add.Tensor"; empty for other namespaces.
std::string aten_name(const c10::OperatorName& name) {
  constexpr std::string_view prefix = "aten::";
  if (!name.name.starts_with(prefix)) {
    return {};
  }
  auto own = name.name.substr(prefix.size());
  return name.overload_name.empty() ? own : own + "." + name.overload_name;
}

/// Gives every operator that has a kernel for `cpu_key`, or is in `more`, that
/// kernel on devices too; all but those in `done`.
void register_cpu_kernels(
    torch::Library& library,
    DispatchKey cpu_key,
    const std::set<std::string>& done,
    const std::set<std::string>& more = {}) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& operator_name : dispatcher.getAllOpNames()) {
    const auto name = aten_name(operator_name);
    const auto op = dispatcher.findOp(operator_name);
    if (name.empty() || done.count(name) != 0 || !op || !op->hasSchema()) {
      continue;
    }
    if (op->hasKernelForDispatchKey(cpu_key) || more.count(name) != 0) {
      library.impl(
          name.c_str(),
          torch::CppFunction::makeFromBoxedFunctor(
              std::make_unique<CpuKernel>(op->schema(), cpu_key)));
    }
  }
}

void register_dense() {
  library("_", DispatchKey::PrivateUse1)
      .fallback(
          torch::CppFunction::makeFromBoxedFunction<&run_unknown_operator>());
  auto& dense = library("aten", DispatchKey::PrivateUse1);
  auto done = register_memory_kernels(dense);
  done.merge(register_dense_composites(dense));
  register_cpu_kernels(dense, DispatchKey::CPU, done, kWholeOnCpu);
}

void register_sparse() {
  auto& sparse = library("aten", DispatchKey::SparsePrivateUse1);
  const auto done = register_sparse_copy(sparse);
  register_cpu_kernels(sparse, DispatchKey::SparseCPU, done);
}

// A copy resolves lazy conjugation and negation itself; their own kernels would
// clone first, which copies again without end.
void let_copies_through() {
  for (const auto key : {DispatchKey::Conjugate, DispatchKey::Negative}) {
    auto& lazy = library("aten", key);
    for (const auto* name : {"_copy_from", "_copy_from_and_resize"}) {
      lazy.impl(name, torch::CppFunction::makeFallthrough());
    }
  }
}

} // namespace

void register_operators() {
  register_dense();
  register_sparse();
  let_copies_through();
  register_autograd_composites(
      library("aten", DispatchKey::AutogradPrivateUse1));
  library("_", DispatchKey::AutocastPrivateUse1)
      .fallback(torch::CppFunction::makeFallthrough());
  register_autocast(library("aten", DispatchKey::AutocastPrivateUse1));
}

} // namespace tandem::sim
