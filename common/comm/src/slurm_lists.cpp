#include "slurm_lists.h"

#include <limits>
#include <sstream>

#include "digits.h"

namespace tandem::comm {

namespace {

constexpr int64_t kMaxTasks = std::numeric_limits<int32_t>::max();

} // namespace

std::optional<std::string> first_slurm_host(const std::string& list) {
  const auto stop = list.find_first_of(",[");
  auto host = list.substr(0, stop);
  if (stop != std::string::npos && list[stop] == '[') {
    const auto close = list.find(']', stop);
    if (close == std::string::npos) {
      return std::nullopt;
    }
    const auto inner = list.substr(stop + 1, close - stop - 1);
    host += inner.substr(0, inner.find_first_of(",-"));
    // "rack[1-2]node[1-4]" and "node[1-2]-ib": what follows is the same name's.
    const auto rest = list.substr(close + 1);
    if (!rest.empty() && rest.front() != ',') {
      const auto more = first_slurm_host(rest);
      if (!more) {
        return std::nullopt;
      }
      host += *more;
    }
  }
  return host.empty() ? std::nullopt : std::make_optional(host);
}

std::optional<int64_t> slurm_tasks_of_node(
    const std::string& list,
    int64_t index) {
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    const auto bracket = item.find("(x");
    const auto tasks = parse_digits(item.substr(0, bracket), kMaxTasks);
    auto num_nodes = std::make_optional<int64_t>(1);
    if (bracket != std::string::npos) {
      const auto end = item.find(')', bracket);
      num_nodes = end == std::string::npos
          ? std::nullopt
          : parse_digits(
                item.substr(bracket + 2, end - bracket - 2),
                kMaxTasks);
    }
    if (!tasks || !num_nodes) {
      return std::nullopt;
    }
    if (index < *num_nodes) {
      return tasks;
    }
    index -= *num_nodes;
  }
  return std::nullopt;
}

} // namespace tandem::comm
