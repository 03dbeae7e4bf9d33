#!/usr/bin/env bash
# Installs what Tandem needs to be built: Debian's packages by apt, LibTorch
# from PyPI into .deps/, which git ignores. Safe to run again: what is there is
# left alone.
#
#   scripts/setup.sh [--with-python] [--with-lint] [--with-mpi]
#                    [--torch VERSION] [--bundle DIR]
#
#   --with-python   the whole of torch for Python (4.6 GB instead of 1.2 GB),
#                   which the tests need
#   --with-lint     clang-format from Debian and clang-tidy from PyPI, whose
#                   version leaves LibTorch's headers alone and so takes half
#                   the time
#   --with-mpi      Open MPI's mpirun (22 MB), which a test starts ranks by
#   --torch VERSION another version than the default
#   --bundle DIR    also collect the C++ dependencies in DIR, for a build on a
#                   machine without a network (TANDEM_BUNDLE=DIR)
#
# LIBTORCH_ROOT=FOLDER uses an existing LibTorch; nothing is then fetched from
# PyPI. TANDEM_BUNDLE=DIR uses a bundle; nothing is then installed by apt.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(g++ cmake ninja-build ccache mold catch2 libfmt-dev libcli11-dev
  nlohmann-json3-dev zlib1g-dev dataset-fashion-mnist python3-venv iproute2)
clang_tidy=23.1.4

with_python=false
with_lint=false
torch=$default_torch
bundle=

parse_arguments() {
  while (($#)); do
    case $1 in
      --with-python) with_python=true ;;
      --with-lint) with_lint=true && packages+=(clang-format-14) ;;
      --with-mpi) packages+=(openmpi-bin) ;;
      --torch) torch=${2:?--torch needs a version} && shift ;;
      --bundle) bundle=${2:?--bundle needs a folder} && shift ;;
      -h | --help) usage && exit ;;
      *) die "unknown argument '$1', see --help" ;;
    esac
    shift
  done
}

missing_packages() {
  local package status
  for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [[ $status == *" installed" ]] || echo "$package"
  done
}

install_packages() {
  if [[ -n ${TANDEM_BUNDLE:-} ]]; then
    echo "setup: C++ dependencies are TANDEM_BUNDLE's, $TANDEM_BUNDLE"
    return
  fi
  if ! command -v apt-get >/dev/null; then
    echo "setup: no apt here; these must be installed: ${packages[*]}"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  local sudo=()
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: Debian packages are missing. As root, run:" >&2
      echo "  apt-get install ${missing[*]}" >&2
      exit 1
    fi
    sudo=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
    --no-install-recommends "${missing[@]}"
}

# Debian's own Python first: the one that python3-venv belongs to.
find_python() {
  local python
  for python in /usr/bin/python3 python3; do
    if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  die "no python3 with venv"
}

pip_install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# The two libraries that libtorch_cpu of a CUDA wheel loads, in the versions
# that the wheel asks for; prints nothing for a CPU wheel.
runtime_requirements() {
  "$venv/bin/python" - <<'PYTHON'
import re
from importlib.metadata import requires

for line in requires("torch") or []:
    name = re.match(r"[\w.-]+", line)[0]
    pin = re.search(r"==\s*([\w.]+)", line)
    if name == "cuda-toolkit":
        print(f"cuda-toolkit[cudart,cupti]=={pin[1]}")
    elif re.match(r"nvidia-cuda-(runtime|cupti)", name):
        print(f"{name}=={pin[1]}")
PYTHON
}

install_bare_torch() {
  echo "setup: LibTorch $torch into .deps (1.2 GB)"
  pip_install --no-deps "torch==$torch"
  local requirements
  mapfile -t requirements < <(runtime_requirements)
  ((${#requirements[@]} == 0)) ||
    pip_install --no-warn-conflicts "${requirements[@]}"
}

install_whole_torch() {
  echo "setup: LibTorch $torch with its Python companions into .deps (4.6 GB)"
  pip_install "torch==$torch" numpy
}

install_clang_tidy() {
  venv=$deps/lint
  "$with_lint" || return 0
  [[ ! -e $venv/clang-tidy-$clang_tidy ]] || return 0
  echo "setup: clang-tidy $clang_tidy into .deps"
  "$(find_python)" -m venv "$venv"
  pip_install "clang-tidy==$clang_tidy"
  touch "$venv/clang-tidy-$clang_tidy"
}

# A stamp is written last and names what was installed; an interrupted run
# leaves none, and the next one completes the folder.
install_torch() {
  if [[ -n ${LIBTORCH_ROOT:-} ]]; then
    echo "setup: LibTorch is LIBTORCH_ROOT's, $LIBTORCH_ROOT"
    return
  fi
  venv=$(torch_venv "$torch")
  local kind=bare
  "$with_python" && kind=whole
  mkdir -p "$deps"
  exec 9>"$deps/lock"
  flock 9
  if [[ -e $venv/tandem-whole || -e $venv/tandem-$kind ]] &&
    (torch_root "$torch") >/dev/null 2>&1 && [[ -x $venv/bin/python ]]; then
    return
  fi
  # In place over a folder of another path or Python, too.
  "$(find_python)" -m venv "$venv"
  "install_${kind}_torch"
  touch "$venv/tandem-$kind"
}

collect_bundle() {
  [[ -n $bundle ]] || return 0
  local file
  mkdir -p "$bundle/include" "$bundle/lib"
  cp -R /usr/include/{catch2,fmt,CLI,nlohmann} "$bundle/include"
  while read -r file; do
    case $file in
      */zlib.h | */zconf.h) cp "$file" "$bundle/include" ;;
      */libz.a) cp "$file" "$bundle/lib" ;;
    esac
  done < <(dpkg -L zlib1g-dev)
  echo "setup: dependencies collected in $bundle"
}

parse_arguments "$@"
install_packages
install_torch
install_clang_tidy
collect_bundle
echo "setup: ready"
