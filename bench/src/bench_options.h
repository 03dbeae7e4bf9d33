#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "harness/mode.h"
#include "harness/turns.h"
#include "placement/placement.h"

namespace tandem::bench {

/// What the command line of `tandem bench` says.
struct BenchOptions {
  std::string workload = "cnn";
  std::vector<std::string> strategies{"single", "dp", "ddp", "ddp-nosync"};
  /// Empty: what is of interest of the workload.
  std::vector<std::string> activities;
  /// Names of communication hooks.
  std::vector<std::string> hooks;
  /// Of the modes that run it.
  std::string python = "python3";
  PlacementRequest placement;
  int64_t batch = 128;
  uint64_t seed = 0;
  TurnPlan turns;
  /// Empty: the wrapper's default.
  std::string refresh_policy;
  std::optional<double> bucket_cap_mib;
  /// Likewise, ddp's.
  std::optional<double> first_bucket_mib;
  double link_latency_us = 0;
  double link_gb_per_s = 0;
  std::string json;

  /// Set in the processes that a run starts: the coordinator's port, and the
  /// index of the only mode.
  std::optional<int64_t> coordinator_port;
  int64_t mode_index = 0;
};

/// Declares all of them on the subcommand.
void add_bench_options(
    CLI::App& app,
    const std::shared_ptr<BenchOptions>& options);

/// The arguments that start this program as workers of `mode`, with index
/// `index`, of a run with `options`.
CommandLine worker_words(
    const BenchOptions& options,
    const Mode& mode,
    int64_t index,
    int64_t port);

} // namespace tandem::bench
