#include "commands.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "doctor/finding.h"
#include "doctor/flight_files.h"
#include "doctor/flight_verdict.h"

namespace tandem::bench {

namespace {

std::vector<Finding> all_findings(const std::filesystem::path& data_dir) {
  std::vector<Finding> all;
  for (auto findings :
       {host_findings(),
        cuda_findings(),
        nccl_findings(),
        std::vector<Finding>{sim_finding()},
        std::vector<Finding>{data_finding(data_dir)},
        comm_findings()}) {
    std::move(findings.begin(), findings.end(), std::back_inserter(all));
  }
  return all;
}

const char* verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kAbsent:
      return "absent";
    case Verdict::kBroken:
      return "BROKEN";
  }
  return "";
}

int run_doctor(const std::filesystem::path& data_dir) {
  bool broken = false;
  for (const auto& finding : all_findings(data_dir)) {
    std::cout << fmt::format(
        "{:<8}{:<13}{}\n",
        verdict_word(finding.verdict),
        finding.subject,
        finding.found);
    if (!finding.remedy.empty()) {
      std::cout << fmt::format("{:<21}remedy: {}\n", "", finding.remedy);
    }
    broken = broken || finding.verdict == Verdict::kBroken;
  }
  return broken ? 1 : 0;
}

int tell_flight_verdict(const std::filesystem::path& folder) {
  const auto verdict = judge_flight(read_flight_records(folder));
  std::cout << fmt::format("{}\n{}\n", verdict.finding, verdict.context);
  return verdict.is_healthy ? 0 : 1;
}

std::function<int()> declare_doctor(CLI::App& app, const CommandLine&) {
  const auto data_dir = std::make_shared<std::string>();
  app.add_option(
      "--data-dir",
      *data_dir,
      "Folder of your own Fashion-MNIST files");
  const auto flight_dir = std::make_shared<std::string>();
  app.add_option(
      "--flight",
      *flight_dir,
      "Folder of flight records (TANDEM_FLIGHT_DIR of a job): say instead, in "
      "two lines, which rank stopped it and where");
  app.footer(
      "Exit code: 1 if something essential does not work or the records show "
      "a failure, else 0.");
  return [data_dir, flight_dir] {
    return flight_dir->empty() ? run_doctor(*data_dir)
                               : tell_flight_verdict(*flight_dir);
  };
}

} // namespace

Command doctor_command() {
  return {
      "doctor",
      "Print what Tandem finds on this machine, and what to do about the rest",
      declare_doctor};
}

} // namespace tandem::bench
