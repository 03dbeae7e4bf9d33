#pragma once

#include <set>
#include <string>

#include <torch/library.h>

namespace tandem::sim {

/// Registers the kernels that are not the CPU's: factories, views, copies and
/// resizing. Returns their names, without "aten::".
std::set<std::string> register_memory_kernels(torch::Library& dense);

/// Copies between sparse tensors of different devices.
std::set<std::string> register_sparse_copy(torch::Library& sparse);

/// Composite operators that would do other arithmetic for an accelerator than
/// for the CPU: dropout, recurrent layers and attention. `autograd` is the
/// library for tensors that may require grad.
void register_autograd_composites(torch::Library& autograd);
std::set<std::string> register_dense_composites(torch::Library& dense);

/// Casting policies, those of CUDA and the CPU.
void register_autocast(torch::Library& autocast);

} // namespace tandem::sim
