#include "doctor/flight_verdict.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>

namespace tandem::bench {

namespace {

using comm::FlightEntry;
using comm::FlightRecord;
using comm::FlightState;
using Ranks = std::vector<int64_t>;

std::string describe_entry(const FlightEntry& entry) {
  return fmt::format(
      "collective {}, {}{}",
      entry.sequence,
      entry.call,
      entry.what.empty() || entry.what == entry.operation
          ? ""
          : fmt::format(", for {}", entry.what));
}

/// The records of one group by rank.
class GroupFlight {
 public:
  void add(const FlightRecord& record) {
    records_[record.rank] = &record;
  }

  /// When the first rank wrote down a failure; the end of time if none did.
  int64_t failed_us() const {
    auto first = std::numeric_limits<int64_t>::max();
    for (const auto& [rank, record] : records_) {
      if (!record->failure.empty()) {
        first = std::min(first, record->written_us);
      }
    }
    return first;
  }

  /// How many collectives the last rank is behind the first.
  int64_t spread() const {
    const auto [least, most] = std::minmax_element(
        records_.begin(),
        records_.end(),
        [](const auto& a, const auto& b) {
          return last_sequence(*a.second) < last_sequence(*b.second);
        });
    return last_sequence(*most->second) - last_sequence(*least->second);
  }

  FlightVerdict verdict() const {
    if (auto found = mismatch()) {
      return *found;
    }
    const auto* stuck = first_stuck();
    const auto absent = missing_ranks();
    if (!absent.empty()) {
      return verdict_of_missing(absent, stuck);
    }
    const auto late = ranks_behind(stuck);
    if (!late.empty()) {
      return {
          false,
          fmt::format(
              "{} behind: {} not come to {}",
              is_or_are(late),
              has_or_have(late),
              describe_entry(*stuck)),
          fmt::format(
              "{}. See what {} did last, and whether it goes on",
              last_of(late.front()),
              comm::list_ranks(late))};
    }
    return verdict_of_all_there(stuck);
  }

 private:
  static int64_t last_sequence(const FlightRecord& record) {
    return record.entries.empty() ? 0 : record.entries.back().sequence;
  }

  static const FlightEntry* find_entry(
      const FlightRecord& record,
      int64_t sequence) {
    const auto found = std::find_if(
        record.entries.begin(),
        record.entries.end(),
        [&](const auto& entry) { return entry.sequence == sequence; });
    return found == record.entries.end() ? nullptr : &*found;
  }

  static std::string is_or_are(const Ranks& ranks) {
    return fmt::format(
        "{} {}",
        comm::list_ranks(ranks),
        ranks.size() == 1 ? "is" : "are");
  }

  static std::string has_or_have(const Ranks& ranks) {
    return ranks.size() == 1 ? "it has" : "they have";
  }

  /// The first collective that ranks called differently.
  std::optional<FlightVerdict> mismatch() const {
    std::map<int64_t, std::map<std::string, Ranks>> calls;
    for (const auto& [rank, record] : records_) {
      for (const auto& entry : record->entries) {
        calls[entry.sequence][entry.call].push_back(rank);
      }
    }
    for (const auto& [sequence, ranks_by_call] : calls) {
      if (ranks_by_call.size() == 1) {
        continue;
      }
      std::string sides;
      for (const auto& [call, ranks] : ranks_by_call) {
        sides += fmt::format(
            "{}{} called {}",
            sides.empty() ? "" : ", ",
            comm::list_ranks(ranks),
            call);
      }
      return FlightVerdict{
          false,
          fmt::format("mismatch at collective {}: {}", sequence, sides),
          "All ranks must start the same collectives in the same order. Run "
          "with TANDEM_DEBUG=detail to stop there"};
    }
    return std::nullopt;
  }

  /// Where a rank first got no further.
  const FlightEntry* first_stuck() const {
    const FlightEntry* first = nullptr;
    for (const auto& [rank, record] : records_) {
      for (const auto& entry : record->entries) {
        if (entry.state != FlightState::kFinished &&
            (first == nullptr || entry.sequence < first->sequence ||
             (entry.sequence == first->sequence && first->what.empty()))) {
          first = &entry;
        }
      }
    }
    return first;
  }

  /// Whom a roll call missed; without one, who left no record.
  Ranks missing_ranks() const {
    std::set<int64_t> missing;
    for (const auto& [rank, record] : records_) {
      missing.insert(record->missing.begin(), record->missing.end());
    }
    if (missing.empty()) {
      for (int64_t rank = 0; rank < records_.begin()->second->size; ++rank) {
        if (!records_.contains(rank)) {
          missing.insert(rank);
        }
      }
    }
    return {missing.begin(), missing.end()};
  }

  Ranks ranks_behind(const FlightEntry* stuck) const {
    Ranks behind;
    for (const auto& [rank, record] : records_) {
      if (stuck != nullptr && last_sequence(*record) < stuck->sequence) {
        behind.push_back(rank);
      }
    }
    return behind;
  }

  std::string last_of(int64_t rank) const {
    const auto found = records_.find(rank);
    if (found == records_.end()) {
      return fmt::format("Rank {} left no record", rank);
    }
    const auto& entries = found->second->entries;
    return entries.empty()
        ? fmt::format("Rank {} has started no collective", rank)
        : fmt::format(
              "Rank {} came last to {}",
              rank,
              describe_entry(entries.back()));
  }

  FlightVerdict verdict_of_missing(
      const Ranks& absent,
      const FlightEntry* stuck) const {
    Ranks waiting;
    for (const auto& [rank, record] : records_) {
      if (stuck != nullptr && find_entry(*record, stuck->sequence) != nullptr &&
          !std::binary_search(absent.begin(), absent.end(), rank)) {
        waiting.push_back(rank);
      }
    }
    return {
        false,
        stuck == nullptr ? fmt::format("{} missing", is_or_are(absent))
                         : fmt::format(
                               "{} missing at {}",
                               is_or_are(absent),
                               describe_entry(*stuck)),
        fmt::format(
            "{}{}. See what {} printed last",
            waiting.empty()
                ? ""
                : fmt::format("{} waited there. ", comm::list_ranks(waiting)),
            last_of(absent.front()),
            comm::list_ranks(absent))};
  }

  FlightVerdict verdict_of_all_there(const FlightEntry* stuck) const {
    const auto& first = *records_.begin()->second;
    if (stuck == nullptr) {
      return {
          true,
          fmt::format("all {} ranks have finished what they began", first.size),
          last_of(first.rank)};
    }
    const bool failed = stuck->state == FlightState::kFailed;
    return {
        !failed,
        fmt::format(
            "all {} ranks {} {}",
            first.size,
            failed ? "failed at" : "are at",
            describe_entry(*stuck)),
        failed && !first.failure.empty()
            ? fmt::format("Rank {} says: {}", first.rank, first.failure)
            : "They wait for the transport, not for a rank"};
  }

  std::map<int64_t, const FlightRecord*> records_;
};

} // namespace

FlightVerdict judge_flight(const std::vector<FlightRecord>& records) {
  std::map<std::string, GroupFlight> groups;
  for (const auto& record : records) {
    groups[record.group].add(record);
  }
  const auto worst = std::min_element(
      groups.begin(),
      groups.end(),
      [](const auto& a, const auto& b) {
        const auto a_failed = a.second.failed_us();
        const auto b_failed = b.second.failed_us();
        return a_failed != b_failed ? a_failed < b_failed
                                    : a.second.spread() > b.second.spread();
      });
  return worst->second.verdict();
}

} // namespace tandem::bench
