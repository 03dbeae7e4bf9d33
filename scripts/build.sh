#!/usr/bin/env bash
# Sets up, configures and builds: the program, build/bin/tandem.
#
#   scripts/build.sh [--all] [--torch VERSION] [CMAKE_ARGUMENT...]
#
#   --all            the tests as well
#   --torch VERSION  with another LibTorch than the default
#
# Further arguments go to cmake, -DTANDEM_CUDA=OFF say.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

torch=$default_torch
target=tandem_program
tests=OFF
arguments=()
while (($#)); do
  case $1 in
    --all) target=all tests=ON ;;
    --torch) torch=${2:?--torch needs a version} && shift ;;
    -h | --help) usage && exit ;;
    -D*) arguments+=("$1") ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
  shift
done

"$root/scripts/setup.sh" --torch "$torch"
configure "$root/build" "$torch" -DTANDEM_BUILD_TESTS=$tests "${arguments[@]}"
cmake --build "$root/build" --target "$target" --parallel "$(build_jobs)"
