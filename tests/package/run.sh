#!/usr/bin/env bash
# Builds and runs the consumer.
#
#   run.sh add_subdirectory FOLDER          Tandem inside the consumer's build,
#                                           without CUDA and unity units
#   run.sh find_package FOLDER TANDEM_BUILD Tandem installed from TANDEM_BUILD
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mode=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)

arguments=()
case $mode in
  add_subdirectory)
    arguments=("-DTANDEM_SOURCE_DIR=$here/../.." -DTANDEM_CUDA=OFF
      -DTANDEM_UNITY=OFF)
    ;;
  find_package)
    cmake --install "$3" --prefix "$folder/prefix" >"$folder/install.log"
    arguments=("-DCMAKE_PREFIX_PATH=$folder/prefix")
    ;;
  *) echo "run.sh: unknown mode '$mode'" >&2 && exit 1 ;;
esac

cmake -S "$here" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  "${arguments[@]}"
cmake --build "$folder" --target consumer --parallel "$(nproc)"
"$folder/consumer"
