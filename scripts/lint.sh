#!/usr/bin/env bash
# Checks the format of all C++ and runs clang-tidy on what changed since
# origin/main or, where nothing did, in the last commit. A changed public header
# is checked as a unit of its own, so that it is known to compile alone.
#
#   scripts/lint.sh [--all] [--torch VERSION]
#
#   --all    clang-tidy on everything (about ten seconds a file)
#
# The compile database, without precompiled headers and unity units, is in
# build/lint. A file that passed is not checked again until it, a header of ours
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

every_file() {
  git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h'
}

"$root/scripts/setup.sh" --with-lint --torch "$torch"
cd "$root"
failed=0
"$root/scripts/format.sh" --check || failed=1
configure build/lint "$torch" -DTANDEM_PCH=OFF -DTANDEM_UNITY=OFF \
  -DCMAKE_VERIFY_INTERFACE_HEADER_SETS=ON >build/lint.log ||
  { cat build/lint.log && exit 1; }
if "$all"; then every_file; else changed_files; fi |
  python3 scripts/tidy.py build/lint "$(build_jobs)" || failed=1
exit "$failed"
