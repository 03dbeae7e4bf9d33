#include <tandem/comm/flight_record.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tandem/core/errors.h>

namespace tandem::comm {

namespace {

constexpr const char* kFlightSchema = "tandem-flight/1";

NLOHMANN_JSON_SERIALIZE_ENUM(
    FlightState,
    {{FlightState::kStarted, "started"},
     {FlightState::kFinished, "finished"},
     {FlightState::kFailed, "failed"}})

nlohmann::json entry_to_json(const FlightEntry& entry) {
  nlohmann::json state;
  to_json(state, entry.state);
  return {
      {"sequence", entry.sequence},
      {"operation", entry.operation},
      {"call", entry.call},
      {"what", entry.what},
      {"state", state},
      {"started_us", entry.started_us},
      {"ended_us", entry.ended_us}};
}

FlightEntry entry_from_json(const nlohmann::json& json) {
  FlightEntry entry;
  json.at("sequence").get_to(entry.sequence);
  json.at("operation").get_to(entry.operation);
  json.at("call").get_to(entry.call);
  json.at("what").get_to(entry.what);
  from_json(json.at("state"), entry.state);
  json.at("started_us").get_to(entry.started_us);
  json.at("ended_us").get_to(entry.ended_us);
  return entry;
}

FlightRecord record_from_json(const nlohmann::json& json) {
  FlightRecord record;
  TORCH_CHECK(json.at("schema") == kFlightSchema, "another schema");
  json.at("group").get_to(record.group);
  json.at("rank").get_to(record.rank);
  json.at("size").get_to(record.size);
  json.at("pid").get_to(record.pid);
  json.at("host").get_to(record.host);
  json.at("reason").get_to(record.reason);
  json.at("written_us").get_to(record.written_us);
  json.at("failure").get_to(record.failure);
  json.at("missing").get_to(record.missing);
  for (const auto& entry : json.at("collectives")) {
    record.entries.push_back(entry_from_json(entry));
  }
  return record;
}

} // namespace

std::string format_flight_record(const FlightRecord& record) {
  auto entries = nlohmann::json::array();
  for (const auto& entry : record.entries) {
    entries.push_back(entry_to_json(entry));
  }
  const nlohmann::json json{
      {"schema", kFlightSchema},
      {"group", record.group},
      {"rank", record.rank},
      {"size", record.size},
      {"pid", record.pid},
      {"host", record.host},
      {"reason", record.reason},
      {"written_us", record.written_us},
      {"failure", record.failure},
      {"missing", record.missing},
      {"collectives", entries}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FlightRecord parse_flight_record(
    const std::string& text,
    const std::string& source) {
  try {
    return record_from_json(nlohmann::json::parse(text));
  } catch (const std::exception& error) {
    const std::string why = error.what();
    throw ConfigError(fmt::format(
        "{}: expected a flight record of schema {}, got something else ({})",
        source,
        kFlightSchema,
        why.substr(0, why.find('\n'))));
  }
}

} // namespace tandem::comm
