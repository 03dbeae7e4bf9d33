#include <tandem/testing/c10d_reducer.h>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace tandem::testing {

namespace {

using Tensors = std::vector<at::Tensor>;
using Buckets = std::vector<std::vector<size_t>>;
using Names = std::unordered_map<size_t, std::string>;

/// Its constructor has one argument more in newer versions.
template <typename R = c10d::Reducer>
std::shared_ptr<R> make_reducer(
    Tensors parameters,
    Buckets buckets,
    const comm::ProcessGroup& group,
    const C10dReducer::Options& options) {
  Names names;
  for (size_t i = 0; i < parameters.size(); ++i) {
    names[i] = std::to_string(i);
  }
  std::vector<bool> sparse(parameters.size(), false);
  const auto make = [&](const auto&... last) {
    return std::make_shared<R>(
        std::move(parameters),
        std::move(buckets),
        group.c10d_group(),
        std::move(sparse),
        options.bucket_cap_bytes,
        /*find_unused_parameters=*/false,
        options.gradient_as_bucket_view,
        std::move(names),
        options.first_bucket_bytes,
        /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false,
        last...);
  };
  if constexpr (std::is_constructible_v<
                    R,
                    Tensors,
                    Buckets,
                    c10::intrusive_ptr<c10d::ProcessGroup>,
                    std::vector<bool>,
                    int64_t,
                    bool,
                    bool,
                    Names,
                    int64_t,
                    bool,
                    bool,
                    std::vector<int64_t>>) {
    return make(std::vector<int64_t>());
  } else {
    return make();
  }
}

} // namespace

C10dReducer::C10dReducer(
    std::vector<at::Tensor> parameters,
    const comm::ProcessGroup& group,
    const Options& options) {
  // One bucket at first: the real ones come with the first rebuild.
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters,
      {std::numeric_limits<size_t>::max()});
  std::reverse(buckets.begin(), buckets.end());
  reducer_ = make_reducer(std::move(parameters), buckets, group, options);
  logger_ = std::make_shared<c10d::Logger>(reducer_);
  reducer_->set_logger(logger_);
  logger_->set_construction_data_and_log("module", {}, -1, false, false, false);
}

void C10dReducer::before_forward() {
  reducer_->prepare_for_forward();
  reducer_->rebuild_buckets();
}

void C10dReducer::after_forward() {
  reducer_->prepare_for_backward({});
}

} // namespace tandem::testing
