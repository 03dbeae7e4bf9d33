#include "doctor/flight_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

bool is_flight_file(const std::filesystem::path& path) {
  return path.extension() == ".json" &&
      path.filename().string().starts_with("flight-");
}

std::vector<std::filesystem::path> flight_files(
    const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    if (is_flight_file(file.path())) {
      paths.push_back(file.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

} // namespace

std::vector<comm::FlightRecord> read_flight_records(
    const std::filesystem::path& folder) {
  std::vector<comm::FlightRecord> records;
  for (const auto& path : flight_files(folder)) {
    std::ifstream stream(path);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    records.push_back(
        comm::parse_flight_record(text, fmt::format("'{}'", path.string())));
  }
  if (records.empty()) {
    throw ConfigError(fmt::format(
        "--flight: expected a folder with files flight-*.json, got none in "
        "'{}'. Start the ranks with TANDEM_FLIGHT_DIR set to it",
        folder.string()));
  }
  return records;
}

} // namespace tandem::bench
