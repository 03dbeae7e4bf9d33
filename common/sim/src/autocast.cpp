#include "kernels.h"

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace tandem::sim {

// The macros are LibTorch's; they register with the library called `m`.
// NOLINTBEGIN
#define TANDEM_SIM_LOWER_PRECISION(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TANDEM_SIM_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TANDEM_SIM_FP32_SET_OPT_DTYPE(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TANDEM_SIM_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

void register_autocast(torch::Library& autocast) {
  using namespace at::autocast;
  using namespace at;
  auto& m = autocast;
  AT_FORALL_LOWER_PRECISION_FP(TANDEM_SIM_LOWER_PRECISION)
  AT_FORALL_FP32(TANDEM_SIM_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TANDEM_SIM_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(
      KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(TANDEM_SIM_PROMOTE)
}
// NOLINTEND

} // namespace tandem::sim
