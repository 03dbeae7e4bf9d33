#pragma once

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace tandem::sim {

/// What LibTorch's device-independent code asks about the devices. To be given
/// to `at::RegisterPrivateUse1HooksInterface`, which keeps the pointer.
at::PrivateUse1HooksInterface* make_hooks();

} // namespace tandem::sim
