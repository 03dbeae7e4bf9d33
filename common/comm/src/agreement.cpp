#include <tandem/comm/agreement.h>

#include <algorithm>

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

/// One agreement, seen from one rank. In the store: a digest per rank, a key
/// set by ranks whose own checks failed, the whole statements of rank 0 and of
/// the first rank that differs.
class Agreement {
 public:
  Agreement(ProcessGroup& group, const std::string& who)
      : store_(*group.store()),
        rank_(group.rank()),
        everyone_(all_ranks(group.size())),
        limit_(group.startup_timeout()),
        tag_(rank_tag(who, group.rank(), group.size())),
        name_(fmt::format("agreement/{}", group.next_sequence())) {}

  void compare(const std::vector<Statement>& statements) {
    const auto text = format_statements(statements);
    StoreMeeting digests(store_, name_ + "/digest", everyone_);
    digests.arrive(rank_, c10::sha1(text).str());
    await(digests);
    if (const auto differing = first_differing(digests.values())) {
      throw_disagreement(text, *differing);
    }
  }

  void report_failure(const std::string& message) {
    store_.set(
        failed_key(),
        fmt::format("{} failed: {}", list_ranks({rank_}), message));
    leave(everyone_);
  }

 private:
  std::string failed_key() const {
    return name_ + "/failed";
  }

  void leave(const std::vector<int64_t>& present) {
    leave_in_order(store_, name_, rank_, present);
  }

  void await(StoreMeeting& meeting) {
    const auto outcome = meeting.await(limit_, failed_key());
    if (outcome.alarm) {
      leave(everyone_);
      throw PeerError(fmt::format("{} {}", tag_, *outcome.alarm));
    }
    if (!outcome.missing.empty()) {
      leave(ranks_without(everyone_, outcome.missing));
      throw TimeoutError(fmt::format(
          "{} agreement: expected every rank's answer within {}, got none from "
          "{}. See what they printed last",
          tag_,
          format_limit(limit_),
          list_ranks(outcome.missing)));
    }
  }

  static std::optional<int64_t> first_differing(
      const std::vector<std::string>& digests) {
    const auto found =
        std::find_if(digests.begin(), digests.end(), [&](const auto& digest) {
          return digest != digests.front();
        });
    return found == digests.end()
        ? std::nullopt
        : std::make_optional<int64_t>(found - digests.begin());
  }

  [[noreturn]] void throw_disagreement(
      const std::string& own_text,
      int64_t differing) {
    StoreMeeting texts(store_, name_ + "/statements", {0, differing});
    if (rank_ == 0 || rank_ == differing) {
      texts.arrive(rank_, own_text);
    }
    await(texts);
    const auto difference = first_difference(
        parse_statements(texts.value_of(0)),
        parse_statements(texts.value_of(differing)));
    leave(everyone_);
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

  c10d::Store& store_;
  int64_t rank_;
  std::vector<int64_t> everyone_;
  std::chrono::milliseconds limit_;
  std::string tag_;
  std::string name_;
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
