#!/usr/bin/env bash
# Checks the format of all C++ and runs clang-tidy on what changed since
# origin/main or, where nothing did, in the last commit. A changed public header
# is checked as a unit of its own, so that it is known to compile alone.
#
#   scripts/lint.sh [--all] [--torch VERSION]
#
#   --all    clang-tidy on everything, source files by the dozen as unity units:
#            LibTorch's headers are read a tenth as often
#
# The compile database, without precompiled headers, is in build/lint or
# build/lint-all. A file that passed is not checked again until it, a header of ours
# that it reads, or .clang-tidy changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

all=false
torch=$default_torch
while (($#)); do
  case $1 in
    --all) all=true ;;
    --torch) torch=${2:?--torch needs a version} && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
  shift
done

changed_files() {
  local patterns=('*.cpp' '*.h') base files
  base=$(git merge-base origin/main HEAD 2>/dev/null || true)
  if [[ -n $base ]]; then
    files=$(git diff --name-only --diff-filter=d "$base" -- "${patterns[@]}" &&
      git ls-files --others --exclude-standard -- "${patterns[@]}")
    [[ -z $files ]] || { echo "$files" && return; }
  fi
  if git rev-parse --quiet --verify HEAD^ >/dev/null; then
    git diff --name-only --diff-filter=d HEAD^ HEAD -- "${patterns[@]}"
  else
    git ls-files -- "${patterns[@]}"
  fi
}

"$root/scripts/setup.sh" --with-lint --torch "$torch"
cd "$root"
failed=0
"$root/scripts/format.sh" --check || failed=1
build=build/lint
unity=OFF
"$all" && build=build/lint-all unity=ON
mkdir -p build
configure "$build" "$torch" -DTANDEM_PCH=OFF -DTANDEM_UNITY=$unity \
  -DCMAKE_VERIFY_INTERFACE_HEADER_SETS=ON >"$build.log" ||
  { cat "$build.log"; exit 1; }
if "$all"; then
  python3 scripts/tidy.py "$build" "$(build_jobs)" --all || failed=1
else
  changed_files | python3 scripts/tidy.py "$build" "$(build_jobs)" || failed=1
fi
exit "$failed"
