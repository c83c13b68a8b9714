#!/usr/bin/env python3
"""fuzz_results.py BUILD_FOLDER NAME STATUS COMMAND: the entry of one fuzzer in bench/results/fuzz.json, from the log of libFuzzer in the build folder."""
import json
import pathlib
import re
import subprocess
import sys

build, name, status, command = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
root = pathlib.Path(__file__).resolve().parent.parent
log = (root / build / f"fuzz_{name}.log").read_text(errors="replace")


def last(pattern):
    found = re.findall(pattern, log)
    return int(found[-1]) if found else None


cache = (root / build / "CMakeCache.txt").read_text()
flags = re.search(r"^CMAKE_CXX_FLAGS:[A-Z]+=(.*)$", cache, re.M).group(1) + " -fsanitize=fuzzer,address,undefined"
findings = sorted(p.name for p in (root / build / "findings" / name).iterdir())
entry = {
    "seconds": last(r"Done \d+ runs in (\d+) second"),
    "executions": last(r"stat::number_of_executed_units:\s*(\d+)"),
    "coverage_edges": last(r"cov: (\d+)"),
    "features": last(r"ft: (\d+)"),
    "corpus": last(r"corp: (\d+)/"),
    "slowest_seconds": last(r"stat::slowest_unit_time_sec:\s*(\d+)"),
    "peak_memory_mb": last(r"stat::peak_rss_mb:\s*(\d+)"),
    "status": status,
    "findings": [f for f in findings if not f.startswith("slow-unit")],
    "slow_inputs": len([f for f in findings if f.startswith("slow-unit")]),
    "flags": flags,
    "command": command,
    "commit": subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip(),
}
path = root / "bench/results/fuzz.json"
results = json.loads(path.read_text()) if path.exists() else {}
results[name] = entry
path.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
