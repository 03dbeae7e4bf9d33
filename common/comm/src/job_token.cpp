#include "job_token.h"

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "store_meeting.h"
#include "text.h"

namespace tandem::comm {

namespace {

constexpr const char* kJobKey = "tandem/job";
// Stands before a token, so that none is not the same as an empty one.
constexpr char kTokenSet = '=';
constexpr const char* kNoToken = "-";

std::string stored_form(const JobToken& token) {
  return token.value ? kTokenSet + *token.value : kNoToken;
}

std::string shown_form(const std::string& stored) {
  return stored == kNoToken ? "nothing (it is not set)"
                            : "'" + stored.substr(1) + "'";
}

/// Rank 0's token; its own if it is the first to say.
std::string token_of_rank0(
    c10d::Store& store,
    const JobToken& token,
    int64_t rank,
    int64_t size,
    std::chrono::milliseconds limit) {
  if (rank == 0) {
    return store.compareSet(kJobKey, "", stored_form(token));
  }
  if (!await_key(store, kJobKey, limit)) {
    throw TimeoutError(fmt::format(
        "{} start-up: expected rank 0 within {}, got no sign of it. See what "
        "it printed last, or raise startup_timeout",
        rank_tag("comm", rank, size),
        format_limit(limit)));
  }
  return store.get_to_str(kJobKey);
}

} // namespace

JobToken read_job_token(const EnvLookup& lookup) {
  const EnvReader reader(lookup);
  const auto* const rule = "the name of this job, without spaces";
  for (const auto* name : {"TANDEM_JOB_ID", "TORCHELASTIC_RUN_ID"}) {
    if (reader.has(name)) {
      return {name, reader.text(name, rule)};
    }
  }
  return {"TANDEM_JOB_ID", std::nullopt};
}

void check_same_job(
    c10d::Store& store,
    const JobToken& token,
    int64_t rank,
    int64_t size,
    std::chrono::milliseconds limit) {
  const auto expected = token_of_rank0(store, token, rank, size, limit);
  const auto own = stored_form(token);
  if (own != expected) {
    throw ConfigError(fmt::format(
        "{} {}: expected {} as for the job that the store belongs to, got {}. "
        "This process has reached another job's store: check MASTER_ADDR and "
        "MASTER_PORT, or start all ranks with the same {}",
        rank_tag("comm", rank, size),
        token.variable,
        shown_form(expected),
        shown_form(own),
        token.variable));
  }
}

} // namespace tandem::comm
