#include <tandem/core/parallel_module.h>

#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem {

NoSyncGuard::NoSyncGuard(ParallelModule& module) : module_(&module) {
  if (module_->no_sync_depth_++ == 0) {
    ++module_->num_no_sync_stretches_;
  }
}

NoSyncGuard::NoSyncGuard(NoSyncGuard&& other) noexcept
    : module_(std::exchange(other.module_, nullptr)) {}

NoSyncGuard::~NoSyncGuard() {
  if (module_ != nullptr) {
    --module_->no_sync_depth_;
  }
}

ParallelModule::ParallelModule(
    std::string name,
    std::shared_ptr<torch::nn::Module> module)
    : torch::nn::Module(std::move(name)), wrapped_(std::move(module)) {
  if (!wrapped_) {
    throw ConfigError(fmt::format(
        "{}: module: expected a module, got null. Construct the module before "
        "it is wrapped",
        this->name()));
  }
  register_module("module", wrapped_);
}

int64_t ParallelModule::world_size() const {
  return 1;
}

int64_t ParallelModule::rank() const {
  return 0;
}

int64_t ParallelModule::num_replicas() const {
  return world_size();
}

int64_t ParallelModule::batch_dim() const {
  return 0;
}

NoSyncGuard ParallelModule::no_sync() {
  return NoSyncGuard(*this);
}

std::optional<int64_t> ParallelModule::no_sync_stretch() const {
  return gradient_sync() ? std::nullopt
                         : std::make_optional(num_no_sync_stretches_);
}

void ParallelModule::set_sample_weight(SampleWeight weight) {
  change_sample_weight(weight);
}

void ParallelModule::set_sample_weight(double weight) {
  if (!std::isfinite(weight) || weight < 0) {
    throw ConfigError(fmt::format(
        "[{} rank {}/{}] sample weight: expected a finite number, 0 or more, "
        "got {}",
        strategy(),
        rank(),
        world_size(),
        weight));
  }
  change_sample_weight(weight);
}

void ParallelModule::change_sample_weight(SampleWeighting weight) {
  const SampleWeighting equal = SampleWeight::kEqual;
  const bool are_used = weight != equal;
  if (are_used != (sample_weight_ != equal)) {
    agree_on_sample_weights(are_used);
  }
  sample_weight_ = weight;
}

void ParallelModule::agree_on_sample_weights(bool /*are_used*/) {}

ParallelModule::EqualWeights::EqualWeights(ParallelModule& module)
    : module_(module),
      kept_(std::exchange(module.sample_weight_, SampleWeight::kEqual)) {}

ParallelModule::EqualWeights::~EqualWeights() {
  module_.sample_weight_ = kept_;
}

std::unique_ptr<UnevenInputs> ParallelModule::uneven_inputs() {
  return std::make_unique<UnevenInputs>();
}

void ParallelModule::all_reduce_sum_(at::Tensor& /*tensor*/) {}

void ParallelModule::broadcast_(at::Tensor& /*tensor*/, int64_t /*root*/) {}

void ParallelModule::barrier() {}

at::Tensor ParallelModule::mean_over_ranks(
    const at::Tensor& loss_sum,
    int64_t rows) {
  return loss_sum / rows;
}

std::vector<at::Tensor> ParallelModule::parameters(bool recurse) const {
  return wrapped_->parameters(recurse);
}

torch::OrderedDict<std::string, at::Tensor> ParallelModule::named_parameters(
    bool recurse) const {
  return wrapped_->named_parameters(recurse);
}

std::vector<at::Tensor> ParallelModule::buffers(bool recurse) const {
  return wrapped_->buffers(recurse);
}

torch::OrderedDict<std::string, at::Tensor> ParallelModule::named_buffers(
    bool recurse) const {
  return wrapped_->named_buffers(recurse);
}

std::vector<std::shared_ptr<torch::nn::Module>> ParallelModule::modules(
    bool include_self) const {
  return wrapped_->modules(include_self);
}

torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>
ParallelModule::named_modules(const std::string& name_prefix, bool include_self)
    const {
  return wrapped_->named_modules(name_prefix, include_self);
}

std::vector<std::shared_ptr<torch::nn::Module>> ParallelModule::children()
    const {
  return wrapped_->children();
}

torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>
ParallelModule::named_children() const {
  return wrapped_->named_children();
}

void ParallelModule::train(bool on) {
  wrapped_->train(on);
}

bool ParallelModule::is_training() const noexcept {
  return wrapped_->is_training();
}

void ParallelModule::to(
    at::Device device,
    at::ScalarType dtype,
    bool non_blocking) {
  wrapped_->to(device, dtype, non_blocking);
}

void ParallelModule::to(at::ScalarType dtype, bool non_blocking) {
  wrapped_->to(dtype, non_blocking);
}

void ParallelModule::to(at::Device device, bool non_blocking) {
  wrapped_->to(device, non_blocking);
}

void ParallelModule::zero_grad(bool set_to_none) {
  wrapped_->zero_grad(set_to_none);
}

void ParallelModule::save(torch::serialize::OutputArchive& archive) const {
  wrapped_->save(archive);
}

void ParallelModule::load(torch::serialize::InputArchive& archive) {
  wrapped_->load(archive);
}

void ParallelModule::pretty_print(std::ostream& stream) const {
  stream << "tandem::" << name();
}

bool ParallelModule::is_serializable() const {
  return wrapped_->is_serializable();
}

} // namespace tandem
