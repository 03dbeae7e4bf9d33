#include "subreaper.h"

#include <sys/prctl.h>

namespace tandem::comm::launch {

Subreaper::Subreaper() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &previous_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Subreaper::~Subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, previous_);
}

} // namespace tandem::comm::launch
