#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <tandem/core/errors.h>

namespace tandem::sim {

namespace {

class SimGenerator final : public c10::GeneratorImpl {
 public:
  SimGenerator(at::Device device, at::Generator cpu)
      : GeneratorImpl(
            device,
            c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        cpu_(std::move(cpu)) {}

  const at::Generator& cpu() const {
    return cpu_;
  }

  void set_current_seed(uint64_t seed) override {
    cpu_.set_current_seed(seed);
  }
  void set_offset(uint64_t offset) override {
    cpu_.set_offset(offset);
  }
  uint64_t get_offset() const override {
    return cpu_.get_offset();
  }
  uint64_t current_seed() const override {
    return cpu_.current_seed();
  }
  uint64_t seed() override {
    return cpu_.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    impl().set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return impl().get_state();
  }

 private:
  c10::GeneratorImpl& impl() const {
    return *cpu_.unsafeGetGeneratorImpl();
  }
  SimGenerator* clone_impl() const override {
    return new SimGenerator(device(), cpu_.clone());
  }

  mutable at::Generator cpu_;
};

std::mutex& lending_mutex() {
  static std::mutex mutex;
  return mutex;
}

at::Generator default_cpu_generator() {
  return at::detail::getDefaultCPUGenerator();
}

at::Tensor state_of(const at::Generator& generator) {
  auto copy = generator;
  const std::lock_guard<std::mutex> lock(copy.mutex());
  return copy.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

} // namespace

at::Generator make_generator(int8_t index) {
  return at::make_generator<SimGenerator>(
      at::Device(at::kPrivateUse1, index),
      at::make_generator<at::CPUGeneratorImpl>());
}

at::Generator cpu_generator(const at::Generator& generator) {
  const auto* sim =
      dynamic_cast<SimGenerator*>(generator.unsafeGetGeneratorImpl());
  if (sim == nullptr) {
    throw ShapeError(
        "generator: expected one of a sim device, got one of " +
        generator.device().str() +
        ". Take the device's own: "
        "at::globalContext().defaultGenerator(device)");
  }
  return sim->cpu();
}

LendState::LendState(at::Generator generator)
    : lock_(lending_mutex()),
      generator_(std::move(generator)),
      saved_(state_of(default_cpu_generator())) {
  set_state(default_cpu_generator(), state_of(generator_));
}

LendState::~LendState() {
  set_state(generator_, state_of(default_cpu_generator()));
  set_state(default_cpu_generator(), saved_);
}

} // namespace tandem::sim
