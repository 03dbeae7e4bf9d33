#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <torch/nn/module.h>

#include <tandem/core/tensor_tree.h>

namespace tandem {

/// One call of a wrapped module, with its types erased: what an engine
/// (`DataParallel`, `DistributedDataParallel`) may do with arguments and result
/// without knowing either. It lives on the caller's stack for one forward.
///
/// Two ways through: `invoke` passes the arguments as they came; or
/// `make_chunks`, then for each chunk write its input tensors and `invoke_chunk`
/// it, then `adopt_chunk_output` and write the result's tensors.
///
/// **Threads**: `invoke_chunk` may run for different chunks at the same time;
/// everything else belongs to one thread.
class ForwardCall {
 public:
  virtual ~ForwardCall() = default;

  virtual void visit_inputs(TreeReader& reader) const = 0;
  /// Calls `module` on the arguments as they came; the result is the output.
  virtual void invoke(torch::nn::Module& module) = 0;

  /// Copies the arguments (tensors as handles) `num_chunks` times.
  virtual void make_chunks(size_t num_chunks) = 0;
  virtual void write_chunk_inputs(size_t chunk, TreeWriter& writer) = 0;
  virtual void invoke_chunk(torch::nn::Module& replica, size_t chunk) = 0;
  virtual void visit_chunk_output(size_t chunk, TreeReader& reader) const = 0;
  /// Makes the output of `chunk` the output of the call.
  virtual void adopt_chunk_output(size_t chunk) = 0;
  /// Lets go of the chunks' inputs and outputs.
  virtual void release_chunks() = 0;

  virtual void visit_output(TreeReader& reader) const = 0;
  virtual void write_output(TreeWriter& writer) = 0;
};

/// Calls `module` on `device`: directly where all inputs are there already,
/// else on copies of the arguments whose tensors were moved.
void invoke_on(ForwardCall& call, torch::nn::Module& module, at::Device device);

namespace detail {

/// What `Function` returns for a module `M` and these arguments, by value.
template <typename Function, typename M, typename... Args>
using CallResult =
    std::decay_t<std::invoke_result_t<const Function&, M&, Args...>>;

/// How one argument is stored: as a value, in each chunk.
template <typename Arg>
using ChunkValue = std::decay_t<Arg>;

/// The argument type that a chunk's stored value is passed as: as it came, so
/// that the same overload of `forward` is chosen; arrays decay.
template <typename Arg>
using ChunkArgument = std::conditional_t<
    std::is_array_v<std::remove_reference_t<Arg>>,
    std::decay_t<Arg>,
    Arg>;

/// `ForwardCall` for a module of type `M` and a function that is called with
/// the module and the arguments.
template <typename M, typename Function, typename... Args>
class TypedForwardCall final : public ForwardCall {
 public:
  using Result = CallResult<Function, M, Args...>;

  explicit TypedForwardCall(const Function& function, Args&&... args)
      : function_(function), args_(std::forward<Args>(args)...) {}

  void visit_inputs(TreeReader& reader) const override {
    std::apply(
        [&](const auto&... args) {
          size_t index = 0;
          ((reader.child(index++), visit_argument(args, reader)), ...);
        },
        args_);
  }

  void invoke(torch::nn::Module& module) override {
    output_.emplace(std::apply(
        [&](auto&&... args) {
          return call(module, static_cast<Args&&>(args)...);
        },
        args_));
  }

  void make_chunks(size_t num_chunks) override {
    chunks_.reserve(num_chunks);
    while (chunks_.size() < num_chunks) {
      chunks_.emplace_back(args_);
    }
    chunk_outputs_.resize(num_chunks);
  }

  void write_chunk_inputs(size_t chunk, TreeWriter& writer) override {
    std::apply(
        [&](auto&... args) { (visit_tree(args, writer), ...); },
        chunks_.at(chunk));
  }

  void invoke_chunk(torch::nn::Module& replica, size_t chunk) override {
    chunk_outputs_.at(chunk).emplace(std::apply(
        [&](auto&... args) {
          return call(replica, static_cast<ChunkArgument<Args>&&>(args)...);
        },
        chunks_.at(chunk)));
  }

  void visit_chunk_output(size_t chunk, TreeReader& reader) const override {
    visit_tree(chunk_outputs_.at(chunk).value(), reader);
  }

  void adopt_chunk_output(size_t chunk) override {
    output_ = std::move(chunk_outputs_.at(chunk));
  }

  void release_chunks() override {
    chunks_.clear();
    chunk_outputs_.clear();
  }

  void visit_output(TreeReader& reader) const override {
    visit_tree(output_.value(), reader);
  }

  void write_output(TreeWriter& writer) override {
    visit_tree(output_.value(), writer);
  }

  /// The result; to be taken once, after the engine has run.
  Result take() {
    if constexpr (!std::is_void_v<Result>) {
      return std::move(output_.value());
    }
  }

 private:
  using Output =
      std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;

  template <typename Arg>
  static void visit_argument(const Arg& arg, TreeReader& reader) {
    if constexpr (std::is_array_v<Arg>) {
      reader.plain_value();
    } else {
      visit_tree(arg, reader);
    }
  }

  template <typename... Passed>
  Output call(torch::nn::Module& module, Passed&&... passed) const {
    auto& typed = dynamic_cast<M&>(module);
    if constexpr (std::is_void_v<Result>) {
      std::invoke(function_, typed, std::forward<Passed>(passed)...);
      return {};
    } else {
      return std::invoke(function_, typed, std::forward<Passed>(passed)...);
    }
  }

  const Function& function_;
  std::tuple<Args&&...> args_;
  std::vector<std::tuple<ChunkValue<Args>...>> chunks_;
  std::vector<std::optional<Output>> chunk_outputs_;
  std::optional<Output> output_;
};

} // namespace detail
} // namespace tandem
