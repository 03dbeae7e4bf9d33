#pragma once

#include <memory>
#include <string>

#include "placement/placement.h"

namespace tandem::bench {

/// Declares `--device` and `--workers` on a subcommand; their values are written
/// to `request` when it is parsed.
void add_device_options(
    CLI::App& app,
    const std::shared_ptr<PlacementRequest>& request);

/// Likewise, and `--threads`.
void add_placement_options(
    CLI::App& app,
    const std::shared_ptr<PlacementRequest>& request);

/// The words that give `--device`, `--workers` and `--threads` these values.
CommandLine placement_words(const PlacementRequest& request);

} // namespace tandem::bench
