#include "flight_log.h"

#include <array>
#include <chrono>
#include <fstream>
#include <random>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <unistd.h>

#include "roll_call.h"
#include "text.h"

namespace tandem::comm {

namespace {

constexpr const char* kGroupNameKey = "flight/group";
constexpr size_t kMaxHostName = 256;
constexpr const char* kPeerFailed = "peer";

std::string own_host_name() {
  std::array<char, kMaxHostName> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

int64_t unix_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Whole or not at all, whenever it is read.
void write_whole(const std::filesystem::path& path, const std::string& text) {
  auto draft = path;
  draft += ".new";
  std::ofstream file(draft);
  file << text << '\n';
  file.close();
  TORCH_CHECK(file, "cannot write '", draft.string(), "'");
  std::filesystem::rename(draft, path);
}

/// A name for the group of `store` that all its ranks come to, whoever asks
/// first. **Throws** `c10::DistNetworkError` if the store is lost.
std::string shared_group_name(c10d::Store& store) {
  std::random_device device;
  const auto high = static_cast<uint64_t>(device());
  const auto proposal = fmt::format("{:08x}{:08x}", high, device());
  return store.compareSet(kGroupNameKey, std::string(), proposal);
}

} // namespace

FlightLog::FlightLog(
    std::filesystem::path folder,
    c10::intrusive_ptr<c10d::Store> store,
    int64_t rank,
    int64_t size)
    : folder_(std::move(folder)), store_(std::move(store)) {
  record_.group = shared_group_name(*store_);
  record_.rank = rank;
  record_.size = size;
  record_.pid = ::getpid();
  record_.host = own_host_name();
}

void FlightLog::write_failure(
    const std::string& reason,
    const std::string& failure,
    const std::vector<int64_t>& missing) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    record_.reason = reason;
    record_.failure = failure;
    record_.missing = missing;
  }
  write();
}

void FlightLog::write_as_asked() noexcept {
  write_because("signal");
}

void FlightLog::look_for_failure() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!record_.failure.empty() || record_.reason == kPeerFailed) {
      return;
    }
  }
  if (RollCall(store_, record_.rank, record_.size).began()) {
    write_because(kPeerFailed);
  }
}

void FlightLog::write_because(const std::string& reason) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (record_.failure.empty()) {
      record_.reason = reason;
    }
  }
  write();
}

void FlightLog::write() noexcept {
  if (folder_.empty()) {
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    record_.entries = recorder_.entries();
    record_.written_us = unix_micros();
    std::filesystem::create_directories(folder_);
    write_whole(
        folder_ /
            fmt::format("flight-{}-rank-{}.json", record_.group, record_.rank),
        format_flight_record(record_));
  } catch (const std::exception& error) {
    TORCH_WARN("flight record: ", first_line(error.what()));
  }
}

} // namespace tandem::comm
