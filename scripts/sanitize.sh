#!/usr/bin/env bash
# sanitize.sh BUILD_FOLDER: runs the GoogleTest programs of a build with sanitizers, JOBS at a time, the long ones on one case in $SHARDS. The
# first report of a sanitizer ends a program with a status of its own; all programs are run before the verdict. What each did goes to
# test-results/sanitize in the build folder and, by scripts/sanitize_results.py, to bench/results/sanitize.json.
set -uo pipefail
build=$1
export TILEWRIGHT_SOURCE=$PWD TILEWRIGHT_BUILD=$build TILEWRIGHT_PROGRAM=$PWD/$build/bin/tilewright TILEWRIGHT_CACHE=$PWD/$build/test-results/cubin-cache
# Z3 keeps its contexts until the process ends; what we leak ourselves is small and short-lived, so leaks are not what this run is for.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export LOGS=$build/test-results/sanitize SHARDS=${SHARDS:-8}
rm -rf "$LOGS"
mkdir -p "$LOGS"

run_one() {
    local name shards=1 status=0 begin=$EPOCHREALTIME
    name=$(basename "$1")
    case $name in test_kernels | test_verify | test_diagnose | test_plan) shards=$SHARDS ;; esac
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=0 timeout "${SANITIZE_SECONDS:-1200}" "$1" --gtest_brief=1 >"$LOGS/$name.log" 2>&1 || status=$?
    echo "$status $shards $begin $EPOCHREALTIME" >"$LOGS/$name.status"
    echo "== $name: $([ $status = 0 ] && echo passed || echo "status $status")$([ "$shards" = 1 ] || echo ", one case in $shards")"
    [ $status = 0 ] || tail -n 60 "$LOGS/$name.log"
}
export -f run_one

# The longest first.
programs=()
for name in kernels verify codegen runtime plan lower diagnose; do [ -x "$build/bin/test_$name" ] && programs+=("$build/bin/test_$name"); done
for program in "$build"/bin/test_*; do
    [ "$(basename "$program")" = test_gpu ] || [[ " ${programs[*]} " == *" $program "* ]] || programs+=("$program")
done
printf '%s\n' "${programs[@]}" | xargs -P "${JOBS:-1}" -I{} bash -c 'run_one {}'

python3 scripts/sanitize_results.py "$build" || exit 1
echo "sanitize: no report"
