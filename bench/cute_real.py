#!/usr/bin/env python3
"""What `tilewright check` says of CuTe kernels that others wrote: one line a file.

    python3 bench/cute_real.py PROGRAM FILE.cu ... [--json OUT.json]

The files are yours to bring: nothing is fetched. A line says how many questions were answered, about what, what was found, and what was not analysed, by reason. Exit status 1 where a check crashes or takes
longer than a minute; a defect that is found is for you to judge.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("files", nargs="+")
parser.add_argument("--json", default="")
o = parser.parse_args()


def reason(text):
    text = re.sub(r"`[^`]*`", "`...`", text)
    return re.sub(r"\d+", "n", text)


rows, failed = [], False
for file in o.files:
    began = time.monotonic()
    try:
        ran = subprocess.run([o.program, "check", file, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        said = json.loads(ran.stdout)
    except (subprocess.TimeoutExpired, ValueError) as problem:
        rows.append({"file": pathlib.Path(file).name, "problem": str(problem)[:200]})
        failed = True
        continue
    found = collections.Counter(d["code"] for d in said.get("diagnostics", []) if d.get("severity") == "error")
    remarks = collections.Counter(d["code"] for d in said.get("diagnostics", []) if d.get("severity") != "error")
    rows.append({"file": pathlib.Path(file).name, "lines": len(pathlib.Path(file).read_text(errors="replace").splitlines()), "verdict": said["verdict"], "questions": said["checks"],
                 "covered": dict(collections.Counter(c["what"] for c in said["covered"])), "found": dict(found), "remarks": dict(remarks), "not_analysed": len(said["not_analysed"]),
                 "reasons": dict(collections.Counter(reason(n["why"]) for n in said["not_analysed"]).most_common(6)), "seconds": round(time.monotonic() - began, 2)})
for r in rows:
    if "problem" in r:
        print(f"{r['file']:32} {r['problem']}")
        continue
    print(f"{r['file']:32} {r['lines']:5} lines  {r['verdict']:11} {r['questions']:4} questions  {r['not_analysed']:3} not analysed  {r['seconds']:.2f} s  " + ", ".join(f"{n} {w}" for w, n in r["covered"].items()))
    if r["found"]:
        print("    found: " + ", ".join(f"{code} x {n}" for code, n in r["found"].items()))
    for why, n in r["reasons"].items():
        print(f"    {n:3} x {why}")
if o.json:
    pathlib.Path(o.json).write_text(json.dumps({"suite": "CuTe kernels of others", "files": rows}, indent=1) + "\n")
sys.exit(1 if failed else 0)
