#include <tandem/core/buffer_policy.h>

namespace tandem {

const char* buffer_policy_name(BufferPolicy policy) {
  switch (policy) {
    case BufferPolicy::kFirst:
      return "first";
    case BufferPolicy::kMerge:
      return "merge";
    case BufferPolicy::kNone:
      break;
  }
  return "none";
}

} // namespace tandem
