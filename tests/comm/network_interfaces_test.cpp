#include <tandem/comm/comm.h>

#include <cstdint>
#include <string>

#include <torch/torch.h>

#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using tandem::testing::missing_parts;
using tandem::testing::run_processes;
using tandem::testing::RunProcessesOptions;
using tandem::testing::try_processes;

namespace {

TANDEM_RANK_FUNCTION(sums_over_interface) {
  comm::init_process_group();
  auto sum = torch::full({1}, comm::rank() + 1);
  comm::all_reduce(sum);
  comm::barrier();
  return {{{"sum", sum}}, ""};
}

} // namespace

TEST_CASE(
    "ranks connect over the interface that is named, ours before Gloo's",
    "[comm][processes]") {
  const auto results = run_processes(
      2,
      "sums_over_interface",
      RunProcessesOptions().environment(
          {{"TANDEM_SOCKET_IFNAME", "lo"},
           {"GLOO_SOCKET_IFNAME", "no-such-interface"}}));
  for (const auto& result : results) {
    CHECK(result.tensors.at("sum").item<int64_t>() == 3);
  }
}

TEST_CASE(
    "an interface that is not there is named with those that are",
    "[comm][processes][ENV-01]") {
  for (const auto* variable : {"TANDEM_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    CAPTURE(variable);
    const auto outcomes = try_processes(
        2,
        "sums_over_interface",
        RunProcessesOptions().environment({{variable, "lo,nosuch0"}}));
    for (const auto& outcome : outcomes) {
      CHECK(outcome.error.starts_with(std::string(variable) + ": expected"));
      CHECK(missing_parts(
                outcome.error,
                {"of this host (", "lo", "got 'lo,nosuch0'"})
                .empty());
    }
  }
}
