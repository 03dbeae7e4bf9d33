#include "flags.h"

namespace tandem::test {

using Options = DistributedDataParallelOptions;

std::vector<Options> with_unused() {
  return {
      Options().find_unused_parameters(true),
      Options().find_unused_parameters(true).gradient_as_bucket_view(false)};
}

std::vector<Options> with_static_graph() {
  return {
      Options().static_graph(true),
      Options().static_graph(true).gradient_as_bucket_view(false)};
}

std::vector<Options> all_flags() {
  std::vector<Options> result;
  for (const bool find_unused : {false, true}) {
    for (const bool is_static : {false, true}) {
      for (const bool as_view : {false, true}) {
        result.push_back(Options()
                             .find_unused_parameters(find_unused)
                             .static_graph(is_static)
                             .gradient_as_bucket_view(as_view));
      }
    }
  }
  return result;
}

std::string rank_text(size_t rank, size_t world_size) {
  return "rank " + std::to_string(rank) + "/" + std::to_string(world_size);
}

} // namespace tandem::test
