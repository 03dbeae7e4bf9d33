#pragma once

/// Everything that a training program includes: both wrappers, the baseline,
/// process groups, the choice between them at run time, and optimizers over
/// ranks.

#include <tandem/check_equivalence.h>
#include <tandem/comm/coalesced.h>
#include <tandem/comm/comm.h>
#include <tandem/comm/error_file.h>
#include <tandem/comm/hierarchical_group.h>
#include <tandem/comm/join.h>
#include <tandem/comm/monitored_barrier.h>
#include <tandem/comm/sub_group.h>
#include <tandem/core/convert_sync_batch_norm.h>
#include <tandem/core/errors.h>
#include <tandem/core/single_device.h>
#include <tandem/core/sync_batch_norm.h>
#include <tandem/ddp/checkpoint.h>
#include <tandem/ddp/comm_hooks.h>
#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/ddp/optimizer_in_backward.h>
#include <tandem/dp/data_parallel.h>
#include <tandem/optim/hierarchical_model_averager.h>
#include <tandem/optim/periodic_model_averager.h>
#include <tandem/optim/post_local_sgd_optimizer.h>
#include <tandem/optim/zero_redundancy_optimizer.h>
#include <tandem/wrap.h>
