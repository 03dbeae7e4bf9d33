#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/wrap.h>

namespace tandem::suite {

/// The reference: the bare module behind the wrappers' interface.
template <typename M>
class PlainImpl final : public Parallel<M> {
 public:
  explicit PlainImpl(std::shared_ptr<M> module)
      : Parallel<M>("Plain", std::move(module)) {}
  std::string strategy() const override {
    return "plain";
  }
  at::Device device() const override {
    return at::kCPU;
  }
  std::string describe() const override {
    return {};
  }
  Counters counters() const override {
    return {};
  }

 private:
  void run(ForwardCall& call) override {
    call.invoke(*this->module());
  }
};

/// What one process of a case works with: its device, its rows, its wrapper.
class Worker {
 public:
  int64_t rank = 0;
  /// Number of processes that share the rows.
  int64_t world_size = 1;
  at::Device device{at::kCPU};
  /// Absent: the reference.
  std::optional<WrapOptions> options;

  template <typename M>
  std::shared_ptr<Parallel<M>> wrap(std::shared_ptr<M> net) const {
    net->to(device);
    if (!options) {
      return std::make_shared<PlainImpl<M>>(std::move(net));
    }
    return tandem::wrap(std::move(net), *options);
  }

  /// This process's rows of a global batch: one of `world_size` equal parts.
  at::Tensor share(const at::Tensor& global_batch) const;
  /// Likewise, as uneven as can be: the first process takes all that the others
  /// leave, which have one row each.
  at::Tensor uneven_share(const at::Tensor& global_batch) const;
};

/// One way to wrap a module: name, wrapper and devices, number of processes.
struct Wrapping {
  std::string name;
  WrapOptions options;
  at::Device device{at::kCPU};
  int64_t num_processes = 1;
  /// Forwards' rows are cut into this many parts altogether.
  int64_t num_replicas = 1;
};

std::ostream& operator<<(std::ostream& stream, const Wrapping& wrapping);

/// The worker of one rank; several ranks on an accelerator have a device each.
Worker rank_worker(const Wrapping& wrapping, int64_t rank);

/// The wrappings on this process's kind of devices.
std::vector<Wrapping> wrappings();

/// What a case computes in each process, to be compared; on any device.
using Body = std::function<std::vector<at::Tensor>(const Worker&)>;

/// Runs `body` in every process of `wrapping` (ranks are threads); one result
/// per process.
std::vector<std::vector<at::Tensor>> run(
    const Wrapping& wrapping,
    const Body& body);

/// Largest difference allowed between two tensors of one dtype.
struct Tolerance {
  double relative;
  double absolute;
};

/// The suite's one table. Double: only the order of additions differs. Float:
/// PyTorch's own bounds for DDP. BFloat16: 8 bits of mantissa.
Tolerance tolerance_for(at::ScalarType dtype);

/// CHECKs that every process's result equals what the bare module computes on
/// the whole batch; undefined tensors equal undefined ones only.
void check_equals_plain(const Wrapping& wrapping, const Body& body);

} // namespace tandem::suite
