#include "optimizer_tensors.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

namespace tandem::detail {

namespace {

namespace optim = torch::optim;
using Tensors = std::vector<at::Tensor>;

template <typename State>
Tensors adam_tensors(const State& state) {
  return {state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq()};
}

Tensors lbfgs_tensors(const optim::LBFGSParamState& state) {
  Tensors tensors{state.d(), state.H_diag(), state.prev_flat_grad()};
  for (const auto* list : {&state.old_dirs(), &state.old_stps(), &state.ro()}) {
    tensors.insert(tensors.end(), list->begin(), list->end());
  }
  if (const auto& al = state.al()) {
    tensors.insert(tensors.end(), al->begin(), al->end());
  }
  return tensors;
}

std::optional<Tensors> state_tensors(const optim::OptimizerParamState& state) {
  if (const auto* sgd = dynamic_cast<const optim::SGDParamState*>(&state)) {
    return Tensors{sgd->momentum_buffer()};
  }
  if (const auto* adam = dynamic_cast<const optim::AdamParamState*>(&state)) {
    return adam_tensors(*adam);
  }
  if (const auto* adamw = dynamic_cast<const optim::AdamWParamState*>(&state)) {
    return adam_tensors(*adamw);
  }
  if (const auto* ada = dynamic_cast<const optim::AdagradParamState*>(&state)) {
    return Tensors{ada->sum()};
  }
  if (const auto* rms = dynamic_cast<const optim::RMSpropParamState*>(&state)) {
    return Tensors{rms->square_avg(), rms->momentum_buffer(), rms->grad_avg()};
  }
  if (const auto* lbfgs = dynamic_cast<const optim::LBFGSParamState*>(&state)) {
    return lbfgs_tensors(*lbfgs);
  }
  return std::nullopt;
}

} // namespace

std::optional<Tensors> optimizer_tensors(const optim::Optimizer& optimizer) {
  Tensors all;
  for (const auto& [key, state] : optimizer.state()) {
    const auto tensors = state_tensors(*state);
    if (!tensors) {
      return std::nullopt;
    }
    all.insert(all.end(), tensors->begin(), tensors->end());
  }
  return all;
}

} // namespace tandem::detail
