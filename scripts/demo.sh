#!/usr/bin/env bash
# Builds the program, verifies that all three ways compute the same, trains a
# convolutional network on Fashion-MNIST each way, and prints a table.
#
#   scripts/demo.sh [--json FILE]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh"
exec "$root/build/bin/tandem" demo "$@"
