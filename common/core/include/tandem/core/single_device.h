#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <torch/arg.h>
#include <torch/nn/pimpl.h>

#include <tandem/core/parallel.h>
#include <tandem/core/parallel_holder.h>

namespace tandem {

struct SingleDeviceOptions {
  /// Where inputs go. Default: the device of the module's first parameter or
  /// buffer, else the CPU. The module must already be there.
  TORCH_ARG(std::optional<at::Device>, device);
};

namespace detail {

/// What `SingleDevice` does, without the module's type.
class SingleDeviceEngine {
 public:
  /// **Throws** `ConfigError` naming the parameter that is not on the device.
  SingleDeviceEngine(
      const torch::nn::Module& module,
      const SingleDeviceOptions& options);

  void run(ForwardCall& call, torch::nn::Module& module);
  std::string describe(const torch::nn::Module& module) const;

  at::Device device() const {
    return device_;
  }
  const Counters& counters() const {
    return counters_;
  }

 private:
  at::Device device_;
  Counters counters_;
};

} // namespace detail

/// The baseline that every comparison needs: one device, no communication, the
/// interface of the parallel wrappers.
template <typename M>
class SingleDeviceImpl final : public Parallel<M> {
 public:
  explicit SingleDeviceImpl(
      std::shared_ptr<M> module,
      const SingleDeviceOptions& options = {})
      : Parallel<M>("SingleDevice", std::move(module)),
        engine_(*this->module(), options) {}

  explicit SingleDeviceImpl(
      const torch::nn::ModuleHolder<M>& module,
      const SingleDeviceOptions& options = {})
      : SingleDeviceImpl(module.ptr(), options) {}

  template <std::derived_from<torch::nn::Module> N>
  explicit SingleDeviceImpl(const N&, const SingleDeviceOptions& = {})
      : SingleDeviceImpl(std::shared_ptr<M>()) {
    detail::refuse_module_by_value<N>();
  }

  std::string strategy() const override {
    return "single";
  }
  at::Device device() const override {
    return engine_.device();
  }
  std::string describe() const override {
    return engine_.describe(*this->module());
  }
  Counters counters() const override {
    return engine_.counters();
  }

 private:
  void run(ForwardCall& call) override {
    engine_.run(call, *this->module());
  }

  detail::SingleDeviceEngine engine_;
};

/// Holder of `SingleDeviceImpl<M>`; `M` is deduced from `Net` or
/// `std::shared_ptr<NetImpl>`.
template <typename M>
class SingleDevice : public ParallelHolder<SingleDeviceImpl<M>> {
 public:
  using ParallelHolder<SingleDeviceImpl<M>>::ParallelHolder;
  using Impl = SingleDeviceImpl<M>;
};

template <typename M, typename... Options>
SingleDevice(const torch::nn::ModuleHolder<M>&, Options&&...)
    -> SingleDevice<M>;
template <typename M, typename... Options>
SingleDevice(std::shared_ptr<M>, Options&&...) -> SingleDevice<M>;
template <std::derived_from<torch::nn::Module> N, typename... Options>
SingleDevice(const N&, Options&&...) -> SingleDevice<N>;

} // namespace tandem
