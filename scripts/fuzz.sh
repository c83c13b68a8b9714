#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang and runs each for FUZZ_SECONDS from its seeds. A finding is left in build-fuzz/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v clang++ >/dev/null; then
    echo "fuzz: clang++ is missing; apt-get install clang" >&2
    exit 1
fi
# The flags of the `sanitize` preset, so that the compiler cache serves both.
cmake -S . -B build-fuzz -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -gline-tables-only" -DCMAKE_CXX_COMPILER=clang++ -DTW_SANITIZE=ON -DTW_FUZZ=ON -Wno-dev >/dev/null
found=0
for source in tests/fuzz/*.cpp; do
    [ -e "$source" ] || continue
    found=1
    name=$(basename "$source" .cpp)
    cmake --build build-fuzz -j "${JOBS:-2}" --target "fuzz_$name"
    mkdir -p "build-fuzz/corpus/$name" "tests/fuzz/seeds/$name"
    "build-fuzz/bin/fuzz_$name" -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=1 -timeout=30 -rss_limit_mb=4096 -artifact_prefix="build-fuzz/$name-" \
        "build-fuzz/corpus/$name" "tests/fuzz/seeds/$name" kernels tests/lang/accept tests/verify/bugs
done
[ "$found" = 1 ] || { echo "fuzz: tests/fuzz has no fuzzers yet" >&2; exit 1; }
