#!/usr/bin/env bash
# Formats Tandem's C++ in place, or checks it.
#
#   scripts/format.sh [--check]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

options=(-i)
case ${1:-} in
  --check) options=(--dry-run --Werror) ;;
  -h | --help) usage && exit ;;
  "") ;;
  *) die "unknown argument '$1', see --help" ;;
esac

"$root/scripts/setup.sh" --with-lint >/dev/null
cd "$root"
git ls-files -z --cached --others --exclude-standard -- \
  '*.h' '*.hpp' '*.cpp' '*.cu' |
  xargs -0 -r sh -c 'for f; do test -e "$f" && printf "%s\0" "$f"; done' sh |
  xargs -0 -r clang-format-14 "${options[@]}"
