#!/usr/bin/env bash
# Sets up, checks format and clang-tidy on what changed, builds everything and
# runs all tests. ctest's summary comes last.
#
#   scripts/test.sh [--cases] [--torch VERSION] [--sanitize KIND] [--no-lint]
#                   [CMAKE_ARGUMENT...]
#
#   --cases          list every case of tests/cases.txt with its outcome
#   --torch VERSION  with another LibTorch, in build/test-VERSION
#   --sanitize KIND  thread, address, undefined or address,undefined, in
#                    build/test-KIND
#   --no-lint        leave out clang-format and clang-tidy
#
# A case of tests/cases.txt without a test that ran fails the run.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

torch=$default_torch
sanitize=
lint=true
list_cases=()
arguments=()
while (($#)); do
  case $1 in
    --cases) list_cases=(--all) ;;
    --torch) torch=${2:?--torch needs a version} && shift ;;
    --sanitize) sanitize=${2:?--sanitize needs a kind} && shift ;;
    --no-lint) lint=false ;;
    -h | --help) usage && exit ;;
    -D*) arguments+=("$1") ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
  shift
done

build=$root/build/test
[[ $torch == "$default_torch" ]] || build+=-$torch
[[ -z $sanitize ]] || build+=-$sanitize
log=$build/ctest.log
failures=()

run_lint() {
  "$root/scripts/lint.sh" --torch "$torch" || failures+=("lint found something")
}

# Runs a command as the sanitizer needs it. LibTorch keeps memory until the
# process ends, so leaks are not looked for. Of the locks that LibTorch takes,
# ThreadSanitizer sees the release without the taking where the C++ library
# releases them, so it looks for races only.
sanitized() {
  local prefix=()
  export ASAN_OPTIONS=detect_leaks=0
  export UBSAN_OPTIONS=print_stacktrace=1
  local races_only="report_mutex_bugs=0:detect_deadlocks=0"
  export TSAN_OPTIONS="$races_only:suppressions='$root/tests/support/tsan.supp'"
  if [[ $sanitize == thread ]] && setarch -R true 2>/dev/null; then
    prefix=(setarch -R) # its shadow memory wants fixed addresses
  fi
  "${prefix[@]}" "$@"
}

build_all() {
  configure "$build" "$torch" -DTANDEM_BUILD_TESTS=ON -DTANDEM_BUILD_BENCH=ON \
    -DTANDEM_SANITIZE="$sanitize" "${arguments[@]}"
  sanitized cmake --build "$build" --parallel "$(build_jobs)"
}

run_tests() {
  sanitized ctest --test-dir "$build" --output-on-failure --parallel 2 \
    --no-label-summary \
    --output-junit "$build/junit.xml" |& tee "$log" ||
    failures+=("tests failed")
}

# Every case is asked for in a whole run only.
run_cases() {
  [[ -z $sanitize ]] || return 0
  python3 "$root/scripts/cases.py" "$root/tests/cases.txt" "$build" \
    "$build/junit.xml" "${list_cases[@]}" ||
    failures+=("a case of tests/cases.txt has no test that ran and passed")
}

"$root/scripts/setup.sh" --with-python --with-lint --with-mpi --torch "$torch"
[[ $lint == false || -n $sanitize ]] || run_lint
build_all
run_tests
run_cases
echo
((${#failures[@]} == 0)) || printf 'test: %s\n' "${failures[@]}"
# Again, so that it is the last thing to be read.
sed -n '/tests passed,/,$p' "$log"
((${#failures[@]} == 0))
