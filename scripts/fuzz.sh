#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang, in the folder of `make sanitize`, and runs each (or those named in FUZZERS="check parse") for
# FUZZ_SECONDS on one core, from its seeds, FUZZ_JOBS of them at a time. An input that takes longer than FUZZ_HANG_SECONDS by the clock counts as
# a hang. What a run did goes to bench/results/fuzz.json; a finding is left in the build folder under findings/ and makes the command fail.
# Without clang: FUZZ_PRESET=sanitize-gcc FUZZ_BUILD=build-fuzz-gcc, where libFuzzer's runtime is found (cmake/trace_pc.cpp).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${FUZZ_PRESET:-sanitize}
if [ "$preset" = sanitize ] && ! command -v clang++ >/dev/null; then
    echo "fuzz: clang++ is missing; apt-get install clang" >&2
    exit 1
fi
export build=${FUZZ_BUILD:-build-sanitize}
cmake --preset "$preset" -B "$build" -DTW_FUZZ=ON -Wno-dev >/dev/null
export UBSAN_OPTIONS=print_stacktrace=1
names=${FUZZERS:-$(basename -s .cpp tests/fuzz/*.cpp)}
# shellcheck disable=SC2086
cmake --build "$build" -j "${JOBS:-2}" --target $(printf 'fuzz_%s ' $names)

run_one() {
    local name=$1 status=0 texts="kernels tests/lang/accept tests/verify/bugs"
    case $name in cute) texts="tests/cute/good tests/cute/broken" ;; task) texts="tasks" ;; esac
    mkdir -p "$build/corpus/$name" "$build/findings/$name" "tests/fuzz/seeds/$name"
    rm -f "$build/findings/$name"/*
    # Z3 keeps its contexts until the process ends, so leaks are not what this run is for.
    # shellcheck disable=SC2206
    local command=("$build/bin/fuzz_$name" -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=1 -timeout="${FUZZ_HANG_SECONDS:-30}" -rss_limit_mb=4096
        -detect_leaks=0 -artifact_prefix="$build/findings/$name/" "$build/corpus/$name" "tests/fuzz/seeds/$name" $texts)
    "${command[@]}" >"$build/fuzz_$name.log" 2>&1 || status=$?
    echo "== $name: status $status"
    tail -n 12 "$build/fuzz_$name.log"
    printf '%s\n%s\n%s\n' "$status" "${command[*]}" "$(cut -d' ' -f1 /proc/loadavg)" >"$build/fuzz_$name.status"
}
export -f run_one
# shellcheck disable=SC2086
printf '%s\n' $names | xargs -P "${FUZZ_JOBS:-1}" -I{} bash -c 'run_one {}'
# shellcheck disable=SC2086
python3 scripts/fuzz_results.py "$build" "${FUZZ_JOBS:-1}" $names
