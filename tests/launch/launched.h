// Calls launch_local for a test and keeps what it printed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tandem/comm/launcher.h>

namespace tandem::test {

struct Launched {
  comm::LaunchResult result;
  std::string out;
  std::string err;
};

/// `options` without its descriptors.
Launched launch_caught(comm::LaunchOptions options);

Launched launch_caught(
    int64_t num_ranks,
    std::vector<std::string> command,
    std::chrono::milliseconds grace = std::chrono::seconds(5),
    const comm::Environment& environment = {});

/// The words of a command that runs tandem_rank_program.
std::vector<std::string> rank_program(std::vector<std::string> actions);

std::vector<std::string> sh(const std::string& script);

} // namespace tandem::test
