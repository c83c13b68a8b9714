#!/usr/bin/env bash
# sanitize.sh BUILD_FOLDER: runs the GoogleTest programs of a build with sanitizers, the long ones on one case in $SHARDS. The first report of a
# sanitizer ends a program with a status of its own; all programs are run before the verdict.
set -uo pipefail
build=$1
export TILEWRIGHT_SOURCE=$PWD TILEWRIGHT_BUILD=$build TILEWRIGHT_PROGRAM=$PWD/$build/bin/tilewright TILEWRIGHT_CACHE=$PWD/$build/test-results/cubin-cache
# Z3 keeps its contexts until the process ends; what we leak ourselves is small and short-lived, so leaks are not what this run is for.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/test-results"
failed=()
for program in "$build"/bin/test_*; do
    name=$(basename "$program")
    [ "$name" = test_gpu ] && continue
    shards=1
    case $name in test_kernels | test_verify | test_diagnose | test_plan) shards=${SHARDS:-8} ;; esac
    echo "== $name$([ "$shards" = 1 ] || echo ", one case in $shards")"
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=0 timeout 1200 "$program" --gtest_brief=1 || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "sanitize: failed: ${failed[*]}" >&2
    exit 1
fi
echo "sanitize: no report"
