// What nearly every unit of the tests reads.
#pragma once

#include <torch/torch.h>

#include "../../tests/support/tandem_catch.h"
