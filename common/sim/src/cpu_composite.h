#pragma once

#include <set>
#include <string>

#include <torch/library.h>

namespace tandem::sim {

// Note [Composites of the CPU]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Recurrent layers and attention are composite operators that take other paths
// on an accelerator than on the CPU. Here the CPU's composite runs on aliases
// (Note [Kernels of the CPU]) with autograd on, and one node of the device's
// graph holds what it recorded: backward runs the inner graph on the device's
// thread, with its memory counted on the device. With create_graph, what that
// recorded in turn is the next node's inner graph.

/// For tensors without autograd. Returns the names.
std::set<std::string> register_cpu_composites(torch::Library& dense);

void register_cpu_composites_autograd(torch::Library& autograd);

} // namespace tandem::sim
