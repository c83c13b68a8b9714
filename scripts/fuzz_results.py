#!/usr/bin/env python3
"""fuzz_results.py BUILD_FOLDER JOBS NAME...: the entries of fuzzers in bench/results/fuzz.json, from what scripts/fuzz.sh left in the build folder; fails
when one of them has a finding."""
import json
import os
import pathlib
import re
import subprocess
import sys

build, jobs, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
root = pathlib.Path(__file__).resolve().parent.parent
cache = (root / build / "CMakeCache.txt").read_text()


def cached(name):
    return re.search(rf"^{name}:[A-Z]+=(.*)$", cache, re.M).group(1)


compiler = subprocess.run([cached("CMAKE_CXX_COMPILER"), "--version"], capture_output=True, text=True).stdout.splitlines()[0]
commit = os.environ.get("COMMIT") or subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
path = root / "bench/results/fuzz.json"
results = json.loads(path.read_text()) if path.exists() else {}
failed = []
for name in names:
    log = (root / build / f"fuzz_{name}.log").read_text(errors="replace")
    status, command, load = (root / build / f"fuzz_{name}.status").read_text().splitlines()

    def last(pattern):
        found = re.findall(pattern, log)
        return int(found[-1]) if found else None

    findings = sorted(p.name for p in (root / build / "findings" / name).iterdir())
    results[name] = {
        "seconds": last(r"Done \d+ runs in (\d+) second"),
        "executions": last(r"stat::number_of_executed_units:\s*(\d+)"),
        "coverage_edges": last(r"cov: (\d+)"),
        "features": last(r"ft: (\d+)"),
        "corpus": last(r"corp: (\d+)/"),
        "slowest_seconds": last(r"stat::slowest_unit_time_sec:\s*(\d+)"),
        "peak_memory_mb": last(r"stat::peak_rss_mb:\s*(\d+)"),
        "status": int(status),
        "findings": [f for f in findings if not f.startswith("slow-unit")],
        "slow_inputs": len([f for f in findings if f.startswith("slow-unit")]),
        "compiler": compiler,
        "flags": cached("CMAKE_CXX_FLAGS") + " -fsanitize=fuzzer,address,undefined" + ("" if "clang" in compiler else " (fuzzer: trace-pc,trace-cmp and libFuzzer's runtime)"),
        "processors": os.cpu_count(),
        "fuzzers_at_once": jobs,
        "load_at_end": float(load),
        "command": command,
        "commit": commit,
    }
    if int(status) != 0:
        failed.append(name)
path.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
if failed:
    sys.exit(f"fuzz: findings of: {' '.join(failed)} ({build}/findings)")
