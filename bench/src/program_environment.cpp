#include "program_environment.h"

#include <string>

namespace tandem::bench {

train::Environment program_environment(int64_t threads) {
  auto environment = train::current_environment();
  environment.threads_per_worker = threads;
  const std::string nccl = TANDEM_NCCL_HEADER_VERSION; // empty: built without
  if (!nccl.empty()) {
    environment.nccl = nccl;
  }
  return environment;
}

} // namespace tandem::bench
