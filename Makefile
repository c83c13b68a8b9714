# One entry for people; CMake does the work. Every target brings the machine up to date first (scripts/setup.sh).
SHELL := /bin/bash
JOBS ?= $(shell nproc)
CTEST = ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

.PHONY: all setup configure program build demo test test-gpu mutation crosscheck test-clusters bench-targets bench-stages bench-verifier hostile compile-all dist wheel sanitize fuzz format check-format tidy clean

all: build

setup:
	@scripts/setup.sh

configure: setup
	@cmake --preset release -Wno-dev >build-configure.log 2>&1 || (cat build-configure.log; exit 1)
	@rm -f build-configure.log

# The program and the library alone.
program: configure
	@cmake --build build -j $(JOBS) --target tilewright_program tilewright

build: configure
	@cmake --build build -j $(JOBS)

# The main job on an embedded default. With no GPU the emulator and the compiler's figures stand in, and the commands say so.
demo: program
	@echo "== what this machine has"; build/bin/tilewright doctor
	@echo; echo "== a Hopper GEMM, proved for all sizes"; build/bin/tilewright check kernels/gemm_sm90.py
	@echo; echo "== the same kernel on the CPU emulator, under hostile schedules, against fp64"; build/bin/tilewright run kernels/gemm_sm90.py --set M=200,N=264,K=136 --schedules 2
	@echo; echo "== its CUDA, compiled (no GPU needed): registers and spills"; build/bin/tilewright emit kernels/gemm_sm90.py --to report
	@echo; echo "== a kernel with a bug: the counterexample"; build/bin/tilewright check examples/missing_barrier.py || test $$? -eq 1

# Everything that needs no GPU.
test: build
	@rm -f build/test-results/*.xml
	@set -o pipefail; $(CTEST) -LE gpu | tee build/ctest.log; status=$$?; \
	  python3 scripts/summarize_tests.py build/test-results; \
	  sed -n '/tests passed/,$$p' build/ctest.log; exit $$status

# Everything that needs one.
test-gpu: build
	@rm -f build/test-results/*.xml
	@TILEWRIGHT_REQUIRE_GPU=1 $(CTEST) -j 1 -L gpu; status=$$?; python3 scripts/summarize_tests.py build/test-results; exit $$status

# The hand-written kernels against their peers, in one run on this machine's GPU.
bench-targets: program
	python3 bench/targets/run_all.py

# The mutation table: every shipped family of kernels broken in many small ways (bench/results/mutation.json), and beside the check
# what random tests on the emulator notice. A run that was stopped goes on with `make mutation RESUME=--resume`.
mutation: program
	build/bin/tilewright mutate --plan bench/mutation_plan.txt $(RESUME) --jobs $(JOBS) --search 2 --trials 1 --random-tests 5 --json bench/results/mutation.json

# Random kernels, half of them broken: nothing that the emulator refutes may be proved (bench/results/crosscheck.json). About an hour on two
# cores; a run that was stopped goes on with `make crosscheck RESUME=--resume`.
CROSSCHECK_COUNT ?= 20000
crosscheck: program
	build/bin/tilewright crosscheck --seed 1 --count $(CROSSCHECK_COUNT) $(RESUME) --jobs $(JOBS) --json bench/results/crosscheck.json

# 60 units on a real Slurm (apt-get install slurm-wlm) and a real Ray cluster (RAY_PYTHON: a Python with ray), with faults; results must be those of
# `local`, byte for byte (docs/clusters.md). What is missing is said and left out. About ten minutes on two cores.
RAY_PYTHON ?=
test-clusters: program
	@mkdir -p bench/results/clusters
	@set -o pipefail; python3 bench/clusters/run.py --program build/bin/tilewright --ray-python "$(RAY_PYTHON)" | tee bench/results/clusters/engines.log

# How long parsing, lowering, proving, printing and emulating take on one core.
bench-stages: build
	@cmake --build build --target stages_bench
	build/bin/stages_bench --benchmark_out=bench/results/stages.json --benchmark_out_format=json

# How long `check` computes for the GEMM and attention kernels, on one core.
bench-verifier: build
	@cmake --build build --target verifier_bench
	build/bin/verifier_bench --benchmark_out=bench/results/verifier.json --benchmark_out_format=json

# Every shipped kernel, every shape of its tests, every hostile schedule (bench/results/hostile.json). `make test` runs a sample of it.
hostile: build
	TILEWRIGHT_SOURCE=$(CURDIR) TILEWRIGHT_HOSTILE_TABLE=bench/results/hostile.json build/bin/test_kernels --gtest_brief=1

# What is accepted compiles: every kernel of the examples and tests, and 400 random ones, through NVRTC. `make test` runs a sample of it.
compile-all: build
	TILEWRIGHT_COMPILE_ALL=1 TILEWRIGHT_SOURCE=$(CURDIR) build/bin/test_codegen --gtest_filter='Compiles.*'

# A folder that can be copied anywhere.
dist: program
	@scripts/make_dist.sh build dist/tilewright

# dist/tilewright-VERSION-py3-none-manylinux_*.whl: the same folder as a Python package, for pip install.
wheel: dist
	@python3 scripts/make_wheel.py dist/tilewright dist

# Address and undefined-behaviour sanitizers over everything: all tests but the kernel table and the shipped proofs, of which one case in eight
# is taken (bench/results/sanitize.json). The fuzzers (make fuzz) are built in the same folder; the build takes twice as long as one of the whole
# tree. With g++ instead of clang: SANITIZE_PRESET=sanitize-gcc.
SANITIZE_SHARDS ?= 8
SANITIZE_PRESET ?= sanitize
sanitize: setup
	cmake --preset $(SANITIZE_PRESET) -Wno-dev
	@begin=$$SECONDS; cmake --build build-sanitize -j $(JOBS) && \
	  BUILD_SECONDS=$$((SECONDS - begin)) JOBS=$(JOBS) SHARDS=$(SANITIZE_SHARDS) scripts/sanitize.sh build-sanitize

# libFuzzer on lexer, parser, lowering and the whole check, each for FUZZ_SECONDS on one core (bench/results/fuzz.json: 600 each).
FUZZ_SECONDS ?= 60
fuzz: setup
	@FUZZ_SECONDS=$(FUZZ_SECONDS) JOBS=$(JOBS) scripts/fuzz.sh

format:
	clang-format -i $$(git ls-files '*.cpp' '*.h')

# The checks of .clang-tidy over the files that differ from main.
tidy:
	clang-tidy --quiet $$(git diff --name-only --diff-filter=d main -- 'src/*.cpp') -- -std=c++20 -Isrc

check-format:
	clang-format --dry-run --Werror $$(git ls-files '*.cpp' '*.h')

clean:
	rm -rf build build-* dist
