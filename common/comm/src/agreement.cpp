#include <tandem/comm/agreement.h>

#include <c10/util/hash.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "statements.h"
#include "store_meeting.h"
#include "text.h"

namespace tandem::comm {

namespace {

/// One agreement, seen from one rank. Keys: a digest per rank, `failed` set by
/// ranks whose own checks failed, the full statements of rank 0 and of the
/// first rank that differs.
class Agreement {
 public:
  Agreement(ProcessGroup& group, const std::string& who)
      : group_(group),
        store_(*group.store()),
        tag_(rank_tag(who, group.rank(), group.size())),
        prefix_(fmt::format("agreement/{}", group.next_sequence())) {}

  void compare(const std::vector<Statement>& statements) {
    const auto text = format_statements(statements);
    store_.set(mark_key(digests(), group_.rank()), c10::sha1(text).str());
    await_all(digests(), all_ranks(group_.size()));
    if (const auto differing = first_differing_rank()) {
      throw_disagreement(text, *differing);
    }
  }

  void report_failure(const std::string& message) {
    store_.set(
        failed(),
        fmt::format("{} failed: {}", list_ranks({group_.rank()}), message));
    leave(all_ranks(group_.size()));
  }

 private:
  std::string digests() const {
    return prefix_ + "/digest";
  }
  std::string statements_key() const {
    return prefix_ + "/statements";
  }
  std::string failed() const {
    return prefix_ + "/failed";
  }

  void leave(const std::vector<int64_t>& present) {
    leave_meeting(store_, prefix_, group_.rank(), present);
  }

  void await_all(const std::string& name, const std::vector<int64_t>& ranks) {
    const auto limit = group_.startup_timeout();
    const auto meeting = await_marks(store_, name, ranks, limit, failed());
    const auto everyone = all_ranks(group_.size());
    if (meeting.alarm) {
      leave(everyone);
      throw PeerError(fmt::format("{} {}", tag_, *meeting.alarm));
    }
    if (!meeting.missing.empty()) {
      leave(ranks_without(everyone, meeting.missing));
      throw TimeoutError(fmt::format(
          "{} agreement: expected every rank's answer within {}, got none from "
          "{}. See what they printed last",
          tag_,
          format_limit(limit),
          list_ranks(meeting.missing)));
    }
  }

  std::optional<int64_t> first_differing_rank() {
    std::vector<std::string> keys;
    for (const auto rank : all_ranks(group_.size())) {
      keys.push_back(mark_key(digests(), rank));
    }
    const auto all = store_.multiGet(keys);
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank] != all[0]) {
        return static_cast<int64_t>(rank);
      }
    }
    return std::nullopt;
  }

  [[noreturn]] void throw_disagreement(
      const std::string& own_text,
      int64_t differing) {
    if (group_.rank() == 0 || group_.rank() == differing) {
      store_.set(mark_key(statements_key(), group_.rank()), own_text);
    }
    await_all(statements_key(), {0, differing});
    const auto read = [&](int64_t rank) {
      return parse_statements(
          store_.get_to_str(mark_key(statements_key(), rank)));
    };
    const auto difference = first_difference(read(0), read(differing));
    leave(all_ranks(group_.size()));
    throw ConfigError(describe(difference.value(), differing));
  }

  std::string describe(const Difference& difference, int64_t differing) const {
    const auto& [first, other] = difference;
    if (first && other && first->subject == other->subject) {
      return fmt::format(
          "{} {}: expected {} as on rank 0, got {} on rank {}. All ranks must "
          "have the same",
          tag_,
          first->subject,
          first->value,
          other->value,
          differing);
    }
    const auto name = [](const std::optional<Statement>& statement) {
      return statement
          ? fmt::format("{} ({})", statement->subject, statement->value)
          : std::string("nothing more");
    };
    return fmt::format(
        "{} {}: expected {} as on rank 0, got {} on rank {}. All ranks must "
        "have the same",
        tag_,
        (first ? first : other)->subject,
        name(first),
        name(other),
        differing);
  }

  ProcessGroup& group_;
  c10d::Store& store_;
  std::string tag_;
  std::string prefix_;
};

} // namespace

void agree_or_throw(
    ProcessGroup& group,
    const std::string& who,
    const std::vector<Statement>& statements) {
  if (group.size() > 1) {
    Agreement(group, who).compare(statements);
  }
}

void report_failure(
    ProcessGroup& group,
    const std::string& who,
    const std::string& message) {
  if (group.size() > 1) {
    Agreement(group, who).report_failure(message);
  }
}

} // namespace tandem::comm
