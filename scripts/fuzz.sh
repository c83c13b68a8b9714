#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang and runs each (or those named in FUZZERS="check parse") for FUZZ_SECONDS on one core, from its
# seeds; an input that takes longer than FUZZ_HANG_SECONDS by the clock counts as a hang. What a run did goes to bench/results/fuzz.json; a finding is left in build-fuzz/ and makes the command fail.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v clang++ >/dev/null; then
    echo "fuzz: clang++ is missing; apt-get install clang" >&2
    exit 1
fi
# The flags of the `sanitize` preset, so that the compiler cache serves both.
flags="-O1 -gline-tables-only"
cmake -S . -B build-fuzz -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=$flags" -DCMAKE_CXX_COMPILER=clang++ -DTW_SANITIZE=ON -DTW_FUZZ=ON -Wno-dev >/dev/null
failed=()
for name in ${FUZZERS:-$(basename -s .cpp tests/fuzz/*.cpp)}; do
    cmake --build build-fuzz -j "${JOBS:-2}" --target "fuzz_$name"
    mkdir -p "build-fuzz/corpus/$name" "build-fuzz/findings/$name" "tests/fuzz/seeds/$name"
    rm -f "build-fuzz/findings/$name"/*
    # Z3 keeps its contexts until the process ends, so leaks are not what this run is for.
    command=("build-fuzz/bin/fuzz_$name" -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=1 -timeout="${FUZZ_HANG_SECONDS:-30}" -rss_limit_mb=4096 -detect_leaks=0
        -artifact_prefix="build-fuzz/findings/$name/" "build-fuzz/corpus/$name" "tests/fuzz/seeds/$name" kernels tests/lang/accept tests/verify/bugs)
    export UBSAN_OPTIONS=print_stacktrace=1
    status=0
    "${command[@]}" >"build-fuzz/$name.log" 2>&1 || status=$?
    tail -n 12 "build-fuzz/$name.log"
    [ "$status" = 0 ] || failed+=("$name")
    python3 scripts/fuzz_results.py "$name" "$status" "$flags -fsanitize=fuzzer,address,undefined" "${command[*]}"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: findings of: ${failed[*]} (build-fuzz/findings)" >&2
    exit 1
fi
