#pragma once

#include <memory>
#include <string>
#include <utility>

#include <torch/arg.h>
#include <torch/nn/pimpl.h>

#include <tandem/core/parallel.h>
#include <tandem/core/single_device.h>
#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/dp/data_parallel.h>

namespace tandem {

enum class Strategy { kSingle, kDP, kDDP };

/// "single", "dp" or "ddp", as `ParallelModule::strategy` says it.
std::string strategy_name(Strategy strategy);
/// The reverse. **Throws** `ConfigError` naming the three.
Strategy strategy_from_name(const std::string& name);

/// A wrapper chosen at run time, with the options of each.
struct WrapOptions {
  /* implicit */ WrapOptions(Strategy strategy = Strategy::kSingle)
      : strategy_(strategy) {}

  TORCH_ARG(Strategy, strategy);
  TORCH_ARG(SingleDeviceOptions, single);
  TORCH_ARG(DataParallelOptions, dp);
  TORCH_ARG(DistributedDataParallelOptions, ddp);
};

/// Wraps `module` as `options.strategy()` says.
/// **Throws** what the wrapper's constructor throws.
///
/// Example:
/// ```cpp
/// auto model = tandem::wrap(net, tandem::strategy_from_name(argv[1]));
/// auto output = model->forward(input);
/// ```
template <typename M>
std::shared_ptr<Parallel<M>> wrap(
    std::shared_ptr<M> module,
    const WrapOptions& options = {}) {
  switch (options.strategy()) {
    case Strategy::kDP:
      return std::make_shared<DataParallelImpl<M>>(
          std::move(module),
          options.dp());
    case Strategy::kDDP:
      return std::make_shared<DistributedDataParallelImpl<M>>(
          std::move(module),
          options.ddp());
    case Strategy::kSingle:
      break;
  }
  return std::make_shared<SingleDeviceImpl<M>>(
      std::move(module),
      options.single());
}

template <typename M>
std::shared_ptr<Parallel<M>> wrap(
    const torch::nn::ModuleHolder<M>& module,
    const WrapOptions& options = {}) {
  return wrap(module.ptr(), options);
}

} // namespace tandem
