#!/usr/bin/env python3
"""sanitize_results.py BUILD_FOLDER: bench/results/sanitize.json, from the logs that scripts/sanitize.sh left; fails when a program did."""
import json
import os
import pathlib
import re
import subprocess
import sys

build = pathlib.Path(sys.argv[1])
root = pathlib.Path(__file__).resolve().parent.parent
programs, begins, ends = {}, [], []
for path in sorted((build / "test-results/sanitize").glob("*.status")):
    status, shards, begin, end = path.read_text().split()
    log = path.with_suffix(".log").read_text(errors="replace")
    ran = re.search(r"(\d+) tests? from \d+ test suites? ran", log)
    reports = re.findall(r"^.*(?:runtime error:|ERROR: AddressSanitizer).*$", log, re.M)
    begins.append(float(begin))
    ends.append(float(end))
    programs[path.stem] = {
        "tests": int(ran.group(1)) if ran else None,
        "one_case_in": int(shards),
        "skipped": len(re.findall(r"^\[  SKIPPED \] \S+ \(", log, re.M)),
        "seconds": round(float(end) - float(begin), 1),
        "status": int(status),
        "failed": sorted(set(re.findall(r"^\[  FAILED  \] (\S+?)(?:, where .*)? \(\d+ ms\)$", log, re.M))),
        "reports": reports[:10],
    }
cache = (build / "CMakeCache.txt").read_text()


def cached(name):
    return re.search(rf"^{name}:[A-Z]+=(.*)$", cache, re.M).group(1)


compiler = subprocess.run([cached("CMAKE_CXX_COMPILER"), "--version"], capture_output=True, text=True).stdout.splitlines()[0]
commit = os.environ.get("COMMIT") or subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
result = {
    "command": os.environ.get("SANITIZE_COMMAND", "make sanitize"),
    "commit": commit,
    "compiler": compiler,
    "flags": cached("CMAKE_CXX_FLAGS") + " -fsanitize=address,undefined",
    "processors": os.cpu_count(),
    "jobs": int(os.environ.get("JOBS", 1)),
    "load_at_end": round(os.getloadavg()[0], 1),
    "build_seconds": float(os.environ["BUILD_SECONDS"]) if os.environ.get("BUILD_SECONDS") else None,
    "run_seconds": round(max(ends) - min(begins), 1),
    "programs": programs,
}
(root / "bench/results/sanitize.json").write_text(json.dumps(result, indent=1) + "\n")
failed = [name for name, p in programs.items() if p["status"] != 0]
if failed or not programs:
    sys.exit("sanitize: failed: " + " ".join(failed))
