#include "reduction_messages.h"

#include <algorithm>

#include <fmt/format.h>

#include "rank_text.h"

namespace tandem::detail {

namespace {

constexpr size_t kNamesInMessage = 20;
constexpr size_t kSizesInDescription = 8;

} // namespace

std::string message_for_missing(
    const comm::ProcessGroup& group,
    const ModuleTensors& tensors,
    const std::vector<size_t>& missing,
    bool is_static_graph) {
  return fmt::format(
      "{} parameters {} ({} of {}): expected a gradient on this rank in the "
      "last synchronised step{}, got none. {}",
      rank_tag(group),
      quoted_names(tensors.trained, missing, kNamesInMessage),
      missing.size(),
      tensors.trained.size(),
      is_static_graph ? " as in the first" : "",
      is_static_graph
          ? "The graph changed: use find_unused_parameters(true) in place of "
            "static_graph"
          : "Use every parameter in each loss, freeze those that are not "
            "trained, requires_grad_(false), or set "
            "find_unused_parameters(true)");
}

std::string message_for_second_gradient(
    const comm::ProcessGroup& group,
    const NamedTensor& parameter,
    bool find_unused) {
  return fmt::format(
      "{} parameter '{}': expected one gradient per synchronised step, got {}. "
      "{}",
      rank_tag(group),
      parameter.name,
      find_unused ? "one that the outputs of forward do not lead to, or a "
                    "second one"
                  : "a second one while other parameters have none yet",
      find_unused
          ? "Use parameters inside forward only, and each in one backward per "
            "forward; or set find_unused_parameters(false)"
          : "Use the parameter in one backward per forward, run all but the "
            "last under no_sync(), or set static_graph(true) for a graph that "
            "reaches it several times in each step");
}

std::string message_for_changed_graph(
    const comm::ProcessGroup& group,
    const NamedTensor& parameter,
    int64_t expected) {
  return fmt::format(
      "{} parameter '{}': expected {} gradient{} in each step of a static "
      "graph, as in the first, got another. The graph changed: use "
      "find_unused_parameters(true) in place of static_graph",
      rank_tag(group),
      parameter.name,
      expected,
      expected == 1 ? "" : "s");
}

std::string describe_buckets(const std::vector<Bucket>& buckets) {
  std::string sizes;
  for (size_t i = 0; i < std::min(buckets.size(), kSizesInDescription); ++i) {
    sizes += fmt::format("{}{}", i == 0 ? "" : ", ", buckets[i].flat.nbytes());
  }
  return fmt::format(
      "{} bucket{} of {}{} bytes",
      buckets.size(),
      buckets.size() == 1 ? "" : "s",
      sizes,
      buckets.size() > kSizesInDescription ? ", ..." : "");
}

} // namespace tandem::detail
