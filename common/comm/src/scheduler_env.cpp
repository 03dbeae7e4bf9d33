#include <tandem/comm/scheduler_env.h>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "slurm_lists.h"

namespace tandem::comm {

namespace {

constexpr int64_t kMaxRanks = std::numeric_limits<int32_t>::max();
constexpr uint32_t kFirstPort = 10000;
constexpr uint32_t kNumPorts = 20000;
constexpr const char* kLoopbackAddress = "127.0.0.1";

using Variables = std::map<std::string, std::string>;

/// The same port on all ranks of a job, another for most other jobs; below the
/// ports that the kernel gives to clients. The hash is FNV-1a.
std::string port_of_job(const std::string& id) {
  constexpr uint32_t offset_basis = 2166136261U;
  constexpr uint32_t prime = 16777619U;
  uint32_t hash = offset_basis;
  for (const char c : id) {
    hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  }
  return std::to_string(kFirstPort + hash % kNumPorts);
}

/// Translates the variables of one scheduler.
class SchedulerReader {
 public:
  explicit SchedulerReader(const EnvLookup& base)
      : base_(base), reader_(base) {}

  Variables read() {
    if (has("RANK") || has("WORLD_SIZE")) {
      return {};
    }
    if (has("OMPI_COMM_WORLD_RANK")) {
      read_open_mpi();
    } else if (is_of_mpich()) {
      read_mpich();
    } else if (has("SLURM_PROCID")) {
      read_slurm();
    }
    return std::move(variables_);
  }

 private:
  bool has(const std::string& name) const {
    return reader_.has(name);
  }

  /// `srun --mpi=pmi2` sets PMI_RANK too, but no local rank; mpiexec inside an
  /// allocation of SLURM's starts its daemons by srun.
  bool is_of_mpich() const {
    return has("PMI_RANK") && has("PMI_SIZE") &&
        (has("MPI_LOCALRANKID") || !has("SLURM_PROCID"));
  }

  int64_t number(const std::string& from, int64_t min) const {
    return reader_.number(
        from,
        min,
        kMaxRanks,
        fmt::format("decimal digits from {} to {}", min, kMaxRanks));
  }

  void translate(const std::string& to, const std::string& from, int64_t min) {
    variables_[to] = std::to_string(number(from, min));
  }

  void translate_if_set(
      const std::string& to,
      const std::string& from,
      int64_t min) {
    if (has(from)) {
      translate(to, from, min);
    }
  }

  void read_open_mpi() {
    translate("RANK", "OMPI_COMM_WORLD_RANK", 0);
    translate("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", 1);
    translate_if_set("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", 0);
    translate_if_set("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", 1);
    meet_on_one_host();
    for (const auto* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}) {
      if (const auto id = base_(name); id && !id->empty()) {
        set_job("ompi-" + *id);
        break;
      }
    }
  }

  void read_mpich() {
    translate("RANK", "PMI_RANK", 0);
    translate("WORLD_SIZE", "PMI_SIZE", 1);
    translate_if_set("LOCAL_RANK", "MPI_LOCALRANKID", 0);
    translate_if_set("LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", 1);
    meet_on_one_host();
    variables_["MASTER_PORT"] = "29500";
  }

  void read_slurm() {
    translate("RANK", "SLURM_PROCID", 0);
    translate(
        "WORLD_SIZE",
        has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
        1);
    translate_if_set("LOCAL_RANK", "SLURM_LOCALID", 0);
    read_slurm_local_size();
    meet_on_one_host();
    read_slurm_address();
    if (const auto job = base_("SLURM_JOB_ID"); job && !job->empty()) {
      const auto step = base_("SLURM_STEP_ID").value_or("0");
      set_job(fmt::format("slurm-{}.{}", *job, step));
    }
  }

  void read_slurm_local_size() {
    const auto tasks =
        first_set({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
    if (!tasks) {
      return;
    }
    const auto node = has("SLURM_NODEID") ? number("SLURM_NODEID", 0) : 0;
    const auto size = slurm_tasks_of_node(*base_(*tasks), node);
    if (!size || *size < 1) {
      reader_.reject(
          *tasks,
          fmt::format("tasks per node as '2(x3),1', with node {}", node));
    }
    variables_["LOCAL_WORLD_SIZE"] = std::to_string(*size);
  }

  void read_slurm_address() {
    const auto nodes = first_set({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"});
    if (variables_.contains("MASTER_ADDR") || !nodes) {
      return;
    }
    const auto host = first_slurm_host(*base_(*nodes));
    if (!host) {
      reader_.reject(*nodes, "a list of hosts as 'node[001-003],gpu1'");
    }
    variables_["MASTER_ADDR"] = *host;
  }

  std::optional<std::string> first_set(
      const std::vector<std::string>& names) const {
    for (const auto& name : names) {
      if (has(name)) {
        return name;
      }
    }
    return std::nullopt;
  }

  void meet_on_one_host() {
    const auto local = variables_.find("LOCAL_WORLD_SIZE");
    if (local != variables_.end() &&
        local->second == variables_["WORLD_SIZE"]) {
      variables_["MASTER_ADDR"] = kLoopbackAddress;
    }
  }

  void set_job(const std::string& id) {
    variables_["MASTER_PORT"] = port_of_job(id);
    variables_["TANDEM_JOB_ID"] = id;
  }

  const EnvLookup& base_;
  EnvReader reader_;
  Variables variables_;
};

} // namespace

EnvLookup scheduler_env(const EnvLookup& base) {
  return [&base, variables = SchedulerReader(base).read()](
             const std::string& name) -> std::optional<std::string> {
    if (auto value = base(name)) {
      return value;
    }
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::make_optional(found->second);
  };
}

} // namespace tandem::comm
