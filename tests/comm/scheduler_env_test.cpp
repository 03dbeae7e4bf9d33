#include <tandem/comm/scheduler_env.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <torch/torch.h>

#include <tandem/comm/comm.h>
#include <tandem/comm/rendezvous_env.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using tandem::testing::missing_parts;
using tandem::testing::thrown_text;

namespace {

using Variables = std::map<std::string, std::string>;

comm::EnvLookup lookup_in(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::make_optional(found->second);
  };
}

comm::RendezvousEnv parse(const Variables& variables) {
  const auto base = lookup_in(variables);
  return comm::parse_rendezvous_env(comm::scheduler_env(base), std::nullopt);
}

std::string text_of(const Variables& variables) {
  return thrown_text<tandem::ConfigError>([&] { parse(variables); })
      .value_or("nothing thrown");
}

Variables open_mpi() {
  return {
      {"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"OMPI_MCA_ess_base_jobid", "1234567890"}};
}

Variables mpich() {
  return {
      {"PMI_RANK", "2"},
      {"PMI_SIZE", "3"},
      {"MPI_LOCALRANKID", "2"},
      {"MPI_LOCALNRANKS", "3"}};
}

/// Task 5 of 7, on the second of three nodes.
Variables slurm() {
  return {
      {"SLURM_PROCID", "5"},
      {"SLURM_NTASKS", "9"},
      {"SLURM_STEP_NUM_TASKS", "7"},
      {"SLURM_LOCALID", "2"},
      {"SLURM_NODEID", "1"},
      {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"},
      {"SLURM_STEP_NODELIST", "node[007-008],gpu1"},
      {"SLURM_JOB_ID", "4711"},
      {"SLURM_STEP_ID", "2"}};
}

TANDEM_RANK_FUNCTION(meets_by_scheduler) {
  const auto rank = std::to_string(process.rank());
  const auto size = std::to_string(process.world_size());
  for (const auto* name :
       {"RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_USE_AGENT_STORE"}) {
    ::unsetenv(name);
  }
  // The test's own process is in the id, so that no two tests share a port.
  const auto job = std::to_string(::getppid());
  const std::map<std::string, Variables> schedulers{
      {"slurm",
       {{"SLURM_PROCID", rank},
        {"SLURM_NTASKS", size},
        {"SLURM_LOCALID", rank},
        {"SLURM_TASKS_PER_NODE", size},
        {"SLURM_JOB_ID", job}}},
      {"ompi",
       {{"OMPI_COMM_WORLD_RANK", rank},
        {"OMPI_COMM_WORLD_SIZE", size},
        {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", size},
        {"PMIX_NAMESPACE", job}}},
  };
  for (const auto& [name, value] : schedulers.at(process.argument())) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  comm::init_process_group();
  auto sum = torch::full({1}, comm::rank() + 1);
  comm::all_reduce(sum);
  comm::barrier();
  return {{{"sum", sum}}, ""};
}

} // namespace

TEST_CASE("Open MPI's variables stand in for torchrun's", "[comm][ENV-01]") {
  const auto env = parse(open_mpi());
  CHECK(env.rank == 1);
  CHECK(env.world_size == 2);
  CHECK(env.local_rank == 1);
  CHECK(env.local_world_size == 2);
  CHECK(env.master_addr == "127.0.0.1");
  CHECK(env.master_port >= 10000);
  CHECK(env.master_port < 30000);
  auto other_job = open_mpi();
  other_job["OMPI_MCA_ess_base_jobid"] = "1234567891";
  CHECK(parse(other_job).master_port != env.master_port);
}

TEST_CASE("MPICH's variables stand in for torchrun's", "[comm][ENV-01]") {
  const auto env = parse(mpich());
  CHECK(env.rank == 2);
  CHECK(env.world_size == 3);
  CHECK(env.local_rank == 2);
  CHECK(env.local_world_size == 3);
  CHECK(env.master_addr == "127.0.0.1");
  CHECK(env.master_port == 29500);
}

TEST_CASE("SLURM's variables stand in for torchrun's", "[comm][ENV-01]") {
  const auto env = parse(slurm());
  CHECK(env.rank == 5);
  CHECK(env.world_size == 7);
  CHECK(env.local_rank == 2);
  CHECK(env.local_world_size == 3);
  CHECK(env.master_addr == "node007");
  CHECK(env.master_port >= 10000);
  const auto variables = slurm();
  const auto base = lookup_in(variables);
  CHECK(comm::scheduler_env(base)("TANDEM_JOB_ID") == "slurm-4711.2");
  auto last = slurm();
  last["SLURM_PROCID"] = "6";
  last["SLURM_LOCALID"] = "0";
  last["SLURM_NODEID"] = "2";
  CHECK(parse(last).local_world_size == 1);
  auto one_host = slurm();
  one_host["SLURM_NODEID"] = "0";
  one_host["SLURM_STEP_TASKS_PER_NODE"] = "7";
  CHECK(parse(one_host).master_addr == "127.0.0.1");
}

TEST_CASE("SLURM's lists of hosts give their first", "[comm]") {
  const std::vector<std::pair<std::string, std::string>> lists{
      {"node1", "node1"},
      {"node1,node2", "node1"},
      {"node[3,5-7]", "node3"},
      {"rack[2-3]node[05-08],x", "rack2node05"},
      {"n[1-2]-ib", "n1-ib"}};
  for (const auto& [list, host] : lists) {
    CAPTURE(list);
    auto variables = slurm();
    variables["SLURM_STEP_NODELIST"] = list;
    CHECK(parse(variables).master_addr == host);
  }
}

TEST_CASE("schedulers are looked at in a fixed order", "[comm][ENV-01]") {
  // mpirun inside an allocation of SLURM's: SLURM counts the daemons.
  auto variables = slurm();
  variables.merge(open_mpi());
  CHECK(parse(variables).world_size == 2);
  // srun --mpi=pmi2 sets MPICH's variables beside its own, without local ranks.
  auto with_pmi = slurm();
  with_pmi["PMI_RANK"] = "5";
  with_pmi["PMI_SIZE"] = "7";
  CHECK(parse(with_pmi).local_world_size == 3);
  auto mpiexec = slurm();
  mpiexec.merge(mpich());
  CHECK(parse(mpiexec).world_size == 3);
}

TEST_CASE("torchrun's variables win over a scheduler's", "[comm][ENV-01]") {
  auto variables = slurm();
  variables["RANK"] = "0";
  CHECK(text_of(variables).starts_with("WORLD_SIZE: expected"));
  auto with_port = slurm();
  with_port["MASTER_PORT"] = "12345";
  with_port["MASTER_ADDR"] = "node9";
  CHECK(parse(with_port).master_port == 12345);
  CHECK(parse(with_port).master_addr == "node9");
}

TEST_CASE("a scheduler's bad variable is named", "[comm][ENV-01]") {
  const auto with = [](Variables variables,
                       const std::string& name,
                       const std::string& value) {
    variables[name] = value;
    return text_of(variables);
  };
  const std::vector<std::pair<std::string, std::string>> texts{
      {"OMPI_COMM_WORLD_RANK", with(open_mpi(), "OMPI_COMM_WORLD_RANK", "+1")},
      {"OMPI_COMM_WORLD_SIZE", with(open_mpi(), "OMPI_COMM_WORLD_SIZE", "+1")},
      {"PMI_SIZE", with(mpich(), "PMI_SIZE", "+1")},
      {"SLURM_PROCID", with(slurm(), "SLURM_PROCID", "+1")},
      {"SLURM_STEP_TASKS_PER_NODE",
       with(slurm(), "SLURM_STEP_TASKS_PER_NODE", "+1")},
  };
  for (const auto& [name, text] : texts) {
    CAPTURE(name, text);
    CHECK(text.starts_with(name + ": expected "));
    CHECK(missing_parts(text, {"got '+1'"}).empty());
  }
  CHECK(with(slurm(), "SLURM_STEP_NODELIST", "node[1-")
            .starts_with("SLURM_STEP_NODELIST: expected a list of hosts"));
  // mpirun over several hosts does not tell where rank 0 is.
  CHECK(with(open_mpi(), "OMPI_COMM_WORLD_SIZE", "4")
            .starts_with("MASTER_ADDR: expected"));
}

TEST_CASE(
    "processes meet by a scheduler's variables alone",
    "[comm][processes][ENV-01]") {
  for (const auto* scheduler : {"slurm", "ompi"}) {
    CAPTURE(scheduler);
    for (const auto& result : tandem::testing::run_processes(
             3,
             "meets_by_scheduler",
             tandem::testing::RunProcessesOptions().argument(scheduler))) {
      CHECK(result.tensors.at("sum").item<int64_t>() == 6);
    }
  }
}
