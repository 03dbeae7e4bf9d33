#include "before_tests.h"

namespace tandem::test {

void start_devices() {}

} // namespace tandem::test
