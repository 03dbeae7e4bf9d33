#include <tandem/dp/memory_report.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem {

namespace {

using OptionalBytes = std::optional<int64_t>;

constexpr const char* kRowFormat =
    "{:<24} {:>10} {:>8} {:>9} {:>9} {:>11} {:>8} {:>9} {:>9}\n";

/// A unit in which the largest number is readable.
class ByteUnit {
 public:
  explicit ByteUnit(int64_t largest_bytes) {
    while (largest_bytes >= 10 * 1024 && index_ + 1 < std::size(kNames)) {
      largest_bytes /= 1024;
      ++index_;
    }
  }

  std::string name() const {
    return kNames[index_];
  }
  std::string format(OptionalBytes bytes) const {
    if (!bytes) {
      return "-";
    }
    if (index_ == 0) {
      return fmt::format("{}", *bytes);
    }
    const auto divisor = static_cast<double>(int64_t{1} << (10 * index_));
    return fmt::format("{:.1f}", static_cast<double>(*bytes) / divisor);
  }

 private:
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB"};
  size_t index_ = 0;
};

std::string table_row(
    const std::string& name,
    const ReplicaMemory& memory,
    const ByteUnit& unit) {
  return fmt::format(
      kRowFormat,
      fmt::format("{} on {}", name, memory.device.str()),
      unit.format(memory.parameters_bytes),
      unit.format(memory.buffers_bytes),
      unit.format(memory.gradients_bytes),
      unit.format(memory.optimizer_bytes),
      unit.format(memory.activations_bytes),
      unit.format(memory.outputs_bytes),
      unit.format(memory.current_bytes),
      unit.format(memory.peak_bytes));
}

/// What replica 0 holds more of than any other one, most of all first.
std::vector<std::pair<int64_t, std::string>> reasons(
    const std::vector<ReplicaMemory>& replicas) {
  const auto excess_bytes = [&](auto field) {
    const auto bytes_of = [&](const ReplicaMemory& memory) {
      return OptionalBytes(memory.*field).value_or(0);
    };
    int64_t others = 0;
    for (size_t index = 1; index < replicas.size(); ++index) {
      others = std::max(others, bytes_of(replicas[index]));
    }
    return bytes_of(replicas.front()) - others;
  };
  std::vector<std::pair<int64_t, std::string>> found{
      {excess_bytes(&ReplicaMemory::buffers_bytes), "buffers"},
      {excess_bytes(&ReplicaMemory::gradients_bytes), "gradients"},
      {excess_bytes(&ReplicaMemory::optimizer_bytes), "optimizer state"},
      {excess_bytes(&ReplicaMemory::activations_bytes), "activations"},
      {excess_bytes(&ReplicaMemory::outputs_bytes), "gathered outputs"}};
  std::erase_if(found, [](const auto& reason) { return reason.first <= 0; });
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

} // namespace

int64_t ReplicaMemory::known_bytes() const {
  return parameters_bytes + buffers_bytes + gradients_bytes +
      optimizer_bytes.value_or(0) + activations_bytes.value_or(0) +
      outputs_bytes.value_or(0);
}

std::string MemoryReport::text() const {
  int64_t largest = 0;
  for (const auto& replica : replicas) {
    largest = std::max(
        {largest, replica.known_bytes(), replica.peak_bytes.value_or(0)});
  }
  const ByteUnit unit(largest);
  auto text = fmt::format(
      kRowFormat,
      "memory, " + unit.name(),
      "parameters",
      "buffers",
      "gradients",
      "optimizer",
      "activations",
      "outputs",
      "now",
      "peak");
  for (size_t index = 0; index < replicas.size(); ++index) {
    text += table_row(fmt::format("replica {}", index), replicas[index], unit);
  }
  if (output_device) {
    text += table_row("outputs", *output_device, unit);
  }
  std::vector<std::string> parts;
  for (const auto& [bytes, name] : reasons(replicas)) {
    parts.push_back(
        fmt::format("{} {} of {}", unit.format(bytes), unit.name(), name));
  }
  if (replicas.size() > 1 && !parts.empty()) {
    text += fmt::format(
        "Replica 0 holds more than any other: {}.\n",
        fmt::join(parts, ", "));
  }
  if (mean_loss_saves_bytes.value_or(0) > 0) {
    text += fmt::format(
        "Gathering costs {} {} {} for the outputs, and as much for their "
        "gradients; mean_loss, whose criterion runs in the replicas, saves "
        "both.\n",
        output_device.value_or(replicas.front()).device.str(),
        unit.format(mean_loss_saves_bytes),
        unit.name());
  }
  return text;
}

} // namespace tandem
