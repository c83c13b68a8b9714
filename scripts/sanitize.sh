#!/usr/bin/env bash
# sanitize.sh BUILD_FOLDER: runs the GoogleTest programs of a build with sanitizers, JOBS at a time, the long ones on one case in $SHARDS (in
# $PARTS parts, which may run side by side). The first report of a sanitizer ends a program with a status of its own; all programs are run before
# the verdict. What each did goes to test-results/sanitize in the build folder and, by scripts/sanitize_results.py, to bench/results/sanitize.json.
set -uo pipefail
build=$1
export TILEWRIGHT_SOURCE=$PWD TILEWRIGHT_BUILD=$build TILEWRIGHT_PROGRAM=$PWD/$build/bin/tilewright TILEWRIGHT_CACHE=$PWD/$build/test-results/cubin-cache
# Z3 keeps its contexts until the process ends; what we leak ourselves is small and short-lived, so leaks are not what this run is for.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export LOGS=$build/test-results/sanitize
rm -rf "$LOGS"
mkdir -p "$LOGS"

run_one() {  # program, of how many shards, which one
    local name status=0 begin=$EPOCHREALTIME seconds=${SANITIZE_SECONDS:-1200}
    # A machine that is lent for a time only: what would run beyond it is ended, and counts as failed.
    if [ -n "${SANITIZE_UNTIL:-}" ] && [ $((SANITIZE_UNTIL - EPOCHSECONDS)) -lt "$seconds" ]; then seconds=$((SANITIZE_UNTIL - EPOCHSECONDS)); fi
    [ "$seconds" -ge 1 ] || seconds=0.01
    name=$(basename "$1")$([ "$3" = 0 ] || echo "-$3")
    GTEST_TOTAL_SHARDS=$2 GTEST_SHARD_INDEX=$3 timeout "$seconds" "$1" --gtest_brief=1 >"$LOGS/$name.log" 2>&1 || status=$?
    echo "$status $2 $begin $EPOCHREALTIME" >"$LOGS/$name.status"
    echo "== $name: $([ $status = 0 ] && echo passed || echo "status $status")$([ "$2" = 1 ] || echo ", one case in $2")"
    [ $status = 0 ] || tail -n 60 "$LOGS/$name.log"
}
export -f run_one

parts=${PARTS:-1}
# The longest first.
for name in kernels verify codegen runtime plan lower diagnose base cute device emulate graph lang layout mcp report target tasks units; do
    program=$build/bin/test_$name
    [ -x "$program" ] || continue
    case $name in
        kernels | verify | diagnose | plan) for part in $(seq 0 $((parts - 1))); do echo "$program $((${SHARDS:-8} * parts)) $part"; done ;;
        codegen | runtime | lower) for part in $(seq 0 $((parts - 1))); do echo "$program $parts $part"; done ;;
        *) echo "$program 1 0" ;;
    esac
done | xargs -P "${JOBS:-1}" -L 1 bash -c 'run_one "$@"' run

missing=$(for program in "$build"/bin/test_*; do name=$(basename "$program"); [ "$name" = test_gpu ] || [ -e "$LOGS/$name.status" ] || echo "$name"; done)
[ -z "$missing" ] || { echo "sanitize: not in the list of this script: $missing" >&2; exit 1; }
python3 scripts/sanitize_results.py "$build" || exit 1
echo "sanitize: no report"
