#include "hooks/power_sgd_hook.h"

#include <memory>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/process_group.h>
#include <tandem/core/errors.h>

#include "hooks/bucket_facts.h"
#include "hooks/orthogonalize.h"

namespace tandem::ddp {

// Note [Two halves of PowerSGD]
// With M one rank's gradient and Q orthonormal, the same on every rank:
//   run:    P = M Q, summed over the ranks while backward goes on; what is not
//           compressed travels in front of it.
//   finish: P made orthonormal, then Q = M^T P, the mean over the ranks of
//           which gives P Q^T = P P^T (mean of M), the same on every rank.
// Factors are computed in float at least and sent in the gradients' dtype. The
// sum of the Ps is divided by the world size, which changes nothing in what P
// spans but keeps half precision from overflowing.

namespace {

/// Buckets may change after the first backward: what is remembered of them
/// cannot start earlier.
constexpr int64_t kFirstStartWithMemory = 2;

/// In a dtype that products are made in.
at::Tensor widened(const at::Tensor& tensor) {
  return tensor.element_size() < 4 ? tensor.to(at::kFloat) : tensor;
}

at::Tensor matrix_of(const at::Tensor& tensor, const LowRankMatrix& matrix) {
  const auto flat = widened(tensor).reshape({-1});
  const int64_t num_missing = matrix.rows * matrix.cols - flat.numel();
  const auto padded =
      num_missing == 0 ? flat : at::constant_pad_nd(flat, {0, num_missing});
  return padded.view({matrix.rows, matrix.cols});
}

void assign(const at::Tensor& tensor, const at::Tensor& matrix) {
  tensor.copy_(
      matrix.reshape({-1}).narrow(0, 0, tensor.numel()).view(tensor.sizes()));
}

/// Takes one part after the other off a flat tensor.
class Parts {
 public:
  explicit Parts(at::Tensor flat) : flat_(std::move(flat)) {}

  at::Tensor next(at::IntArrayRef sizes) {
    const int64_t num_elems = c10::multiply_integers(sizes);
    const int64_t offset_elems =
        std::exchange(offset_elems_, offset_elems_ + num_elems);
    return flat_.narrow(0, offset_elems, num_elems).view(sizes);
  }

 private:
  at::Tensor flat_;
  int64_t offset_elems_ = 0;
};

} // namespace

std::string PowerSGDHook::name() const {
  return options_.batched() ? "batched_powerSGD" : "powerSGD";
}

std::string PowerSGDHook::configuration() const {
  return fmt::format(
      "{}(rank {}, start iteration {}, min compression rate {}, error feedback "
      "{}, warm start {}, epsilon {}, seed {})",
      name(),
      options_.matrix_approximation_rank(),
      options_.start_iteration(),
      options_.min_compression_rate(),
      options_.use_error_feedback() ? "on" : "off",
      options_.warm_start() ? "on" : "off",
      options_.orthogonalization_epsilon(),
      options_.random_seed());
}

comm::TensorFuture PowerSGDHook::run(comm::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  const int64_t bytes = bytes_of(bucket);
  const bool is_compressed =
      iteration_ >= options_.start_iteration() && is_compressible(bucket);
  iteration_ += bucket.is_last() ? 1 : 0;
  if (!is_compressed) {
    memories_[bucket.index()].is_compressed = false;
    count(bytes, bytes);
    return comm::all_reduce_future(group(), bucket.buffer());
  }
  if (options_.use_error_feedback()) {
    feedback_.add_to(bucket);
  }
  auto& memory = memory_of(bucket);
  memory.is_compressed = true;
  prepare_q(memory);

  const auto& plan = memory.plan;
  const auto tensors = tensors_of(bucket);
  const auto sent =
      at::empty({plan.plain_elems + plan.p_elems}, bucket.buffer().options());
  Parts sent_parts(sent);
  for (const size_t index : plan.plain) {
    sent_parts.next(tensors[index].sizes()).copy_(tensors[index]);
  }
  Parts q_parts(memory.q);
  for (const auto& matrix : plan.matrices) {
    const auto q = q_parts.next({matrix.cols, matrix.rank});
    sent_parts.next({matrix.rows, matrix.rank})
        .copy_(matrix_of(tensors[matrix.tensor], matrix).matmul(q));
  }
  count(bytes, static_cast<int64_t>(sent.nbytes()));
  return comm::all_reduce_future(group(), sent);
}

at::Tensor PowerSGDHook::finish(
    comm::GradBucket& bucket,
    const at::Tensor& reduced) {
  auto& memory = memories_.at(bucket.index());
  if (!memory.is_compressed) {
    return reduced;
  }
  const at::NoGradGuard no_grad;
  const auto& plan = memory.plan;
  const auto tensors = tensors_of(bucket);
  Parts reduced_parts(reduced);
  for (const size_t index : plan.plain) {
    tensors[index].copy_(reduced_parts.next(tensors[index].sizes()));
  }
  std::vector<at::Tensor> ps;
  Parts q_parts(memory.q);
  for (const auto& matrix : plan.matrices) {
    const auto p =
        widened(reduced_parts.next({matrix.rows, matrix.rank})).contiguous();
    orthogonalize(p, options_.orthogonalization_epsilon());
    q_parts.next({matrix.cols, matrix.rank})
        .copy_(matrix_of(tensors[matrix.tensor], matrix).t().matmul(p));
    ps.push_back(p);
  }
  if (plan.q_elems > 0) {
    auto sent_q = memory.q.to(bucket.buffer().scalar_type()) / group().size();
    group().confirm(
        group().all_reduce_async(sent_q),
        fmt::format("{}, Q of bucket {}", name(), bucket.index()));
    count_sent(static_cast<int64_t>(sent_q.nbytes()));
    memory.q.copy_(sent_q);
  }
  Parts mean_q_parts(memory.q);
  for (size_t index = 0; index < ps.size(); ++index) {
    const auto& matrix = plan.matrices[index];
    const auto q = mean_q_parts.next({matrix.cols, matrix.rank});
    assign(tensors[matrix.tensor], ps[index].matmul(q.t()));
  }
  const auto& buffer = bucket.buffer();
  if (options_.use_error_feedback()) {
    feedback_.subtract(bucket, buffer);
  }
  return buffer;
}

PowerSGDHook::Memory& PowerSGDHook::memory_of(const comm::GradBucket& bucket) {
  auto& memory = memories_[bucket.index()];
  const bool is_known =
      memory.q.defined() && has_parameters(bucket, memory.parameters);
  if (!is_known) {
    std::vector<std::vector<int64_t>> shapes;
    for (const auto& tensor : tensors_of(bucket)) {
      shapes.push_back(tensor.sizes().vec());
    }
    memory.parameters = bucket.parameters();
    memory.plan = make_low_rank_plan(shapes, options_);
  }
  if (!is_known || !options_.warm_start()) {
    memory.random_q = random_factors(memory.plan, widened(bucket.buffer()));
    memory.q = memory.random_q.clone();
  }
  return memory;
}

std::vector<at::Tensor> PowerSGDHook::tensors_of(
    const comm::GradBucket& bucket) const {
  return options_.batched() ? std::vector<at::Tensor>{bucket.buffer()}
                            : bucket.gradients();
}

void PowerSGDHook::prepare_q(const Memory& memory) const {
  Parts q_parts(memory.q);
  Parts random_parts(memory.random_q);
  for (const auto& matrix : memory.plan.matrices) {
    const auto q = q_parts.next({matrix.cols, matrix.rank});
    const auto random = random_parts.next({matrix.cols, matrix.rank});
    const auto is_zero = q.eq(0).all(/*dim=*/0, /*keepdim=*/true);
    q.copy_(at::where(is_zero, random, q));
    orthogonalize(q, options_.orthogonalization_epsilon());
  }
}

at::Tensor PowerSGDHook::random_factors(
    const LowRankPlan& plan,
    const at::Tensor& like) {
  auto generator = at::detail::createCPUGenerator(
      static_cast<uint64_t>(options_.random_seed() + num_draws_++));
  const auto factors = at::empty({plan.q_elems}, like.options());
  Parts parts(factors);
  for (const auto& matrix : plan.matrices) {
    const std::vector<int64_t> sizes{matrix.cols, matrix.rank};
    parts.next(sizes).copy_(
        at::randn(sizes, generator, like.options().device(at::kCPU)));
  }
  return factors;
}

CommHookPtr power_sgd_hook(const PowerSGDOptions& options) {
  if (options.matrix_approximation_rank() < 1) {
    throw ConfigError(fmt::format(
        "[ddp] PowerSGD matrix_approximation_rank: expected 1 or more, got {}",
        options.matrix_approximation_rank()));
  }
  if (!(options.min_compression_rate() > 0)) {
    throw ConfigError(fmt::format(
        "[ddp] PowerSGD min_compression_rate: expected above 0, got {}",
        options.min_compression_rate()));
  }
  const bool remembers = options.use_error_feedback() || options.warm_start();
  if (remembers && options.start_iteration() < kFirstStartWithMemory) {
    throw ConfigError(fmt::format(
        "[ddp] PowerSGD start_iteration: expected {} or more with error "
        "feedback or warm start, since buckets may change after the first "
        "backward, got {}. Start later, or turn off use_error_feedback and "
        "warm_start",
        kFirstStartWithMemory,
        options.start_iteration()));
  }
  return std::make_shared<PowerSGDHook>(options);
}

} // namespace tandem::ddp
