#include "placement/placement_options.h"

#include <CLI/CLI.hpp>

namespace tandem::bench {

void add_device_options(
    CLI::App& app,
    const std::shared_ptr<PlacementRequest>& request) {
  app.add_option(
         "--device",
         request->device,
         "auto: CUDA if there is a device, else the CPU; sim: simulated "
         "devices")
      ->check(CLI::IsMember({"auto", "cpu", "sim", "cuda"}))
      ->capture_default_str();
  app.add_option(
      "--workers",
      request->workers,
      "Replicas of dp, ranks of ddp; default: one per CUDA device, or per "
      "simulated one (TANDEM_SIM_DEVICES), else 2");
}

void add_placement_options(
    CLI::App& app,
    const std::shared_ptr<PlacementRequest>& request) {
  add_device_options(app, request);
  app.add_option("--threads", request->threads, "Intra-op threads per worker")
      ->capture_default_str();
}

CommandLine placement_words(const PlacementRequest& request) {
  CommandLine words{
      "--device",
      request.device,
      "--threads",
      std::to_string(request.threads)};
  if (request.workers) {
    words.insert(words.end(), {"--workers", std::to_string(*request.workers)});
  }
  return words;
}

} // namespace tandem::bench
