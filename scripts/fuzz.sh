#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang, in the folder of `make sanitize`, and runs each (or those named in FUZZERS="check parse") for
# FUZZ_SECONDS on one core, from its seeds. An input that takes longer than FUZZ_HANG_SECONDS by the clock counts as a hang. What a run did
# goes to bench/results/fuzz.json; a finding is left in the build folder under findings/ and makes the command fail.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v clang++ >/dev/null; then
    echo "fuzz: clang++ is missing; apt-get install clang" >&2
    exit 1
fi
build=${FUZZ_BUILD:-build-sanitize}
cmake --preset sanitize -B "$build" -Wno-dev >/dev/null
export UBSAN_OPTIONS=print_stacktrace=1
failed=()
for name in ${FUZZERS:-$(basename -s .cpp tests/fuzz/*.cpp)}; do
    cmake --build "$build" -j "${JOBS:-2}" --target "fuzz_$name"
    mkdir -p "$build/corpus/$name" "$build/findings/$name" "tests/fuzz/seeds/$name"
    rm -f "$build/findings/$name"/*
    # Z3 keeps its contexts until the process ends, so leaks are not what this run is for.
    command=("$build/bin/fuzz_$name" -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=1 -timeout="${FUZZ_HANG_SECONDS:-30}" -rss_limit_mb=4096 -detect_leaks=0
        -artifact_prefix="$build/findings/$name/" "$build/corpus/$name" "tests/fuzz/seeds/$name" kernels tests/lang/accept tests/verify/bugs)
    status=0
    "${command[@]}" >"$build/fuzz_$name.log" 2>&1 || status=$?
    tail -n 12 "$build/fuzz_$name.log"
    [ "$status" = 0 ] || failed+=("$name")
    python3 scripts/fuzz_results.py "$build" "$name" "$status" "${command[*]}"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: findings of: ${failed[*]} ($build/findings)" >&2
    exit 1
fi
