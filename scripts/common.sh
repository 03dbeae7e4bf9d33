# Sourced by the other scripts: where things are, and which versions.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps="$root/.deps"
default_torch=2.15.0

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# Prints the comment at the head of the calling script.
usage() {
  sed -n '2,/^[^#]/{s/^# \{0,1\}//;t print;d;:print p}' "$0"
}

# torch_venv VERSION: the folder that setup.sh installs that version into.
torch_venv() {
  echo "$deps/torch-$1"
}

# torch_root VERSION: LibTorch's folder, LIBTORCH_ROOT's if that is set.
torch_root() {
  if [[ -n ${LIBTORCH_ROOT:-} ]]; then
    echo "$LIBTORCH_ROOT"
    return
  fi
  local found
  for found in "$(torch_venv "$1")"/lib/python3*/site-packages/torch; do
    [[ -e $found/lib/libtorch_cpu.so ]] && echo "$found" && return
  done
  die "no LibTorch $1 in .deps; run scripts/setup.sh --torch $1"
}

# configure FOLDER TORCH_VERSION [CMAKE_ARGUMENT...]
configure() {
  local folder=$1 libtorch
  libtorch=$(torch_root "$2")
  shift 2
  cmake -S "$root" -B "$folder" -G Ninja -DLIBTORCH_ROOT="$libtorch" "$@"
}

# How many compilers at once: a unit takes up to 1.5 GB.
build_jobs() {
  local cores memory_gb
  cores=$(nproc)
  memory_gb=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  local most=$((memory_gb / 2))
  ((most < 1)) && most=1
  echo $((cores < most ? cores : most))
}
