#pragma once

#include <tandem/comm/env_reader.h>

namespace tandem::comm {

/// `base` with torchrun's variables where they are absent (neither RANK nor
/// WORLD_SIZE is set) and a scheduler has started this process, tried in this
/// order:
/// - Open MPI's `mpirun`: OMPI_COMM_WORLD_RANK, .._SIZE, .._LOCAL_RANK,
///   .._LOCAL_SIZE;
/// - MPICH's and its kin's: PMI_RANK, PMI_SIZE, MPI_LOCALRANKID,
///   MPI_LOCALNRANKS;
/// - SLURM's `srun`: SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS,
///   SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE with SLURM_NODEID.
///
/// Of MASTER_ADDR, MASTER_PORT, LOCAL_RANK, LOCAL_WORLD_SIZE and TANDEM_JOB_ID,
/// what is set stays. Otherwise MASTER_ADDR is the loopback address if all ranks
/// are on one host, and SLURM's first node; `mpirun` over several hosts does not
/// tell where rank 0 is, so there MASTER_ADDR must be set. MASTER_PORT, from
/// 10000 to 29999, and TANDEM_JOB_ID follow from the job's id; MPICH gives none,
/// so the port is 29500 there.
///
/// `base` must outlive the result, which **throws** `ConfigError` naming the
/// scheduler's variable, its value and the rule.
EnvLookup scheduler_env(const EnvLookup& base);

} // namespace tandem::comm
