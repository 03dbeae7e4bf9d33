#include "commands.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "doctor/finding.h"

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

std::function<int()> declare_doctor(CLI::App& app, const CommandLine&) {
  const auto data_dir = std::make_shared<std::string>();
  app.add_option(
      "--data-dir",
      *data_dir,
      "Folder of your own Fashion-MNIST files");
  app.footer("Exit code: 1 if something essential does not work, else 0.");
  return [data_dir] { return run_doctor(*data_dir); };
}

} // namespace

Command doctor_command() {
  return {
      "doctor",
      "Print what Tandem finds on this machine, and what to do about the rest",
      declare_doctor};
}

} // namespace tandem::bench
