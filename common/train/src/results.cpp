#include <tandem/train/results.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tandem/core/errors.h>
#include <tandem/core/order_statistics.h>

#include "atomic_file.h"

namespace tandem::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "tandem-results/1";

template <typename T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) {
    object[key] = *value;
  }
}

template <typename T>
void take(const Json& object, const char* key, std::optional<T>& value) {
  if (const auto at = object.find(key); at != object.end()) {
    value = at->template get<T>();
  }
}

template <typename T>
void take(const Json& object, const char* key, std::vector<T>& values) {
  if (const auto at = object.find(key); at != object.end()) {
    values = at->template get<std::vector<T>>();
  }
}

Json environment_json(const Environment& environment) {
  Json json;
  json["tandem"] = environment.tandem;
  json["torch"] = environment.torch;
  put(json, "nccl", environment.nccl);
  json["cpu"] = environment.cpu;
  json["cores"] = environment.cores;
  json["threads_per_worker"] = environment.threads_per_worker;
  return json;
}

Environment environment_from(const Json& json) {
  Environment environment;
  environment.tandem = json.at("tandem");
  environment.torch = json.at("torch");
  take(json, "nccl", environment.nccl);
  environment.cpu = json.at("cpu");
  environment.cores = json.at("cores");
  environment.threads_per_worker = json.at("threads_per_worker");
  return environment;
}

Json step_times_json(const std::vector<double>& raw) {
  const auto statistics = order_statistics(raw);
  return {
      {"p10", statistics.p10},
      {"p50", statistics.p50},
      {"p90", statistics.p90},
      {"p99", statistics.p99},
      {"min", statistics.min},
      {"count", statistics.count},
      {"raw", raw}};
}

Json counters_json(const Counters& counters) {
  return {
      {"forwards", counters.forwards},
      {"bytes_moved", counters.bytes_moved},
      {"collectives", counters.collectives},
      {"copies", counters.copies}};
}

Counters counters_from(const Json& json) {
  Counters counters;
  counters.forwards = json.at("forwards");
  counters.bytes_moved = json.at("bytes_moved");
  counters.collectives = json.at("collectives");
  counters.copies = json.at("copies");
  return counters;
}

Json losses_json(const std::vector<LoggedLoss>& losses) {
  auto json = Json::array();
  for (const auto& [step, loss] : losses) {
    json.push_back({{"step", step}, {"loss", loss}});
  }
  return json;
}

Json row_json(const ResultRow& row) {
  Json json;
  json["name"] = row.name();
  json["workload"] = row.workload;
  json["strategy"] = row.strategy;
  if (!row.variant.empty()) {
    json["variant"] = row.variant;
  }
  if (!row.hook.empty()) {
    json["hook"] = row.hook;
  }
  json["device"] = row.device;
  put(json, "backend", row.backend);
  json["workers"] = row.workers;
  json["threads_per_worker"] = row.threads_per_worker;
  json["batch"] = row.batch;
  if (!row.step_ms.empty()) {
    json["step_ms"] = step_times_json(row.step_ms);
  }
  put(json, "samples_per_s", row.samples_per_s);
  put(json, "speedup", row.speedup);
  put(json, "verify_max_abs_diff", row.verify_max_abs_diff);
  put(json, "flops_per_step", row.flops_per_step);
  put(json, "bytes_from_first_device", row.bytes_from_first_device);
  put(json, "communication_ms", row.communication_ms);
  put(json, "hidden_communication_ms", row.hidden_communication_ms);
  put(json, "step_gradient_error", row.step_gradient_error);
  put(json, "summed_gradient_error", row.summed_gradient_error);
  put(json, "gradient_bytes", row.gradient_bytes);
  put(json, "hook_bytes", row.hook_bytes);
  put(json, "test_loss", row.test_loss);
  put(json, "test_accuracy", row.test_accuracy);
  if (!row.losses.empty()) {
    json["losses"] = losses_json(row.losses);
  }
  if (!row.peak_bytes.empty()) {
    json["peak_bytes"] = row.peak_bytes;
  }
  put(json, "steps_run", row.steps_run);
  if (row.counters) {
    json["counters"] = counters_json(*row.counters);
  }
  return json;
}

ResultRow row_from(const Json& json) {
  ResultRow row;
  row.workload = json.at("workload");
  row.strategy = json.at("strategy");
  row.variant = json.value("variant", "");
  row.hook = json.value("hook", "");
  row.device = json.at("device");
  take(json, "backend", row.backend);
  row.workers = json.at("workers");
  row.threads_per_worker = json.at("threads_per_worker");
  row.batch = json.at("batch");
  if (const auto times = json.find("step_ms"); times != json.end()) {
    take(*times, "raw", row.step_ms);
  }
  take(json, "samples_per_s", row.samples_per_s);
  take(json, "speedup", row.speedup);
  take(json, "verify_max_abs_diff", row.verify_max_abs_diff);
  take(json, "flops_per_step", row.flops_per_step);
  take(json, "bytes_from_first_device", row.bytes_from_first_device);
  take(json, "communication_ms", row.communication_ms);
  take(json, "hidden_communication_ms", row.hidden_communication_ms);
  take(json, "step_gradient_error", row.step_gradient_error);
  take(json, "summed_gradient_error", row.summed_gradient_error);
  take(json, "gradient_bytes", row.gradient_bytes);
  take(json, "hook_bytes", row.hook_bytes);
  take(json, "test_loss", row.test_loss);
  take(json, "test_accuracy", row.test_accuracy);
  if (const auto losses = json.find("losses"); losses != json.end()) {
    for (const auto& entry : *losses) {
      row.losses.push_back({entry.at("step"), entry.at("loss")});
    }
  }
  take(json, "peak_bytes", row.peak_bytes);
  take(json, "steps_run", row.steps_run);
  if (const auto counters = json.find("counters"); counters != json.end()) {
    row.counters = counters_from(*counters);
  }
  return row;
}

} // namespace

std::string ResultRow::name() const {
  auto text = fmt::format("{}/{}/{}/{}", workload, strategy, workers, batch);
  if (!variant.empty()) {
    text += "/" + variant;
  }
  if (!hook.empty()) {
    text += "/hook=" + hook;
  }
  if (threads_per_worker != 1) {
    text += fmt::format("/threads={}", threads_per_worker);
  }
  return text;
}

int64_t ResultRow::total_peak_bytes() const {
  return std::accumulate(peak_bytes.begin(), peak_bytes.end(), int64_t{0});
}

std::string to_json(const Results& results) {
  Json json;
  json["schema"] = kSchema;
  json["command"] = results.command;
  json["environment"] = environment_json(results.environment);
  json["rows"] = Json::array();
  for (const auto& row : results.rows) {
    json["rows"].push_back(row_json(row));
  }
  return json.dump(1) + "\n";
}

Results results_from_json(const std::string& text, const std::string& origin) {
  try {
    const auto json = Json::parse(text);
    if (json.at("schema") != kSchema) {
      throw ConfigError(fmt::format(
          "results file '{}': schema: expected {}, got {}",
          origin,
          kSchema,
          json.at("schema").dump()));
    }
    Results results;
    results.command = json.at("command").get<std::vector<std::string>>();
    results.environment = environment_from(json.at("environment"));
    for (const auto& row : json.at("rows")) {
      results.rows.push_back(row_from(row));
    }
    return results;
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format(
        "results file '{}': expected {}, got: {}",
        origin,
        kSchema,
        error.what()));
  }
}

void write_results(const std::filesystem::path& path, const Results& results) {
  write_file_atomically(path, to_json(results));
}

Results read_results(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    throw ConfigError(fmt::format(
        "results file '{}': expected a readable file, got none",
        path.string()));
  }
  return results_from_json(text.str(), path.string());
}

} // namespace tandem::train
