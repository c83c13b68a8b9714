"""Runs the hand-written target kernels' families and merges their rows into one file.

    python3 bench/targets/run_all.py [--out bench/results/h200/targets.json] [--families gemm,memory] [--limit 240]

A family is bench/targets/<family>.py; it is run in a process of its own (a crash, a hang or a sticky CUDA error costs that
family only) with OUTDIR set to an empty folder and the arguments in FAMILIES. What it leaves in that folder is read: a .json
file with {"cases": [row, ...], ...} or [row, ...], or a .jsonl file, of whose lines those with `case` and `ours_us` are
rows. A row has at least case, family, ours_us, peer, peer_us, ratio (peer_us / ours_us: above 1 is faster than the peer),
interval (of the ratio), l2, notes. A family that fails is named under "failed" with the end of its output, beside whatever
rows it left.
"""
import argparse
import datetime
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FAMILIES = {  # arguments of the run whose rows are the family's result; {folder} is its OUTDIR
    "gemm": ["time"],
    "grouped": ["time"],
    "attention": ["--time", "--out", "{folder}/attention_log.jsonl", "--rows", "{folder}/attention.json"],
    "memory": ["--out", "{folder}/memory.json"],
}
FIELDS = ["case", "family", "ours_us", "peer", "peer_us", "ratio", "interval", "l2", "notes"]


def versions():
    found = {"python": platform.python_version()}
    probe = ("import json, torch; p = torch.cuda.get_device_properties(0); "
             "print(json.dumps(dict(torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(), "
             "gpu=p.name, multiprocessors=p.multi_processor_count)))")
    try:
        found.update(json.loads(subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60).stdout))
    except (subprocess.SubprocessError, ValueError):
        found["gpu"] = None
    try:
        driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                                text=True, timeout=20)
        found["driver"] = driver.stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        found["driver"] = None
    try:
        head = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, timeout=20)
        found["commit"] = head.stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        found["commit"] = None
    return found


def read_rows(folder, family):
    """(rows, the rest of the family's files, problem). Every row is kept: a loss is a result too."""
    rows, rest = [], {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        try:
            if name.endswith(".jsonl"):
                with open(path) as f:
                    found = [json.loads(line) for line in f if line.strip()]
                rows += [r for r in found if isinstance(r, dict) and "case" in r and "ours_us" in r]
            elif name.endswith(".json"):
                with open(path) as f:
                    data = json.load(f)
                rows += data if isinstance(data, list) else data.get("cases", [])
                if isinstance(data, dict):
                    rest.update({k: v for k, v in data.items() if k not in ("cases", "versions", "command")})
        except (OSError, ValueError, AttributeError) as e:
            return rows, rest, f"unreadable result {name}: {e}"
    out = {}
    for row in rows:
        row = dict(row)
        row.setdefault("family", family)
        if row.get("ratio") is None and row.get("ours_us") and row.get("peer_us"):
            row["ratio"] = row["peer_us"] / row["ours_us"]
        whole = {**{k: row.get(k) for k in FIELDS}, **{k: v for k, v in row.items() if k not in FIELDS}}
        out[(row["family"], row.get("case"), str(row.get("notes")))] = whole  # a row written twice counts once
    return list(out.values()), rest, None if out else "it left no rows"


def run_family(family, limit_s, extra):
    script = os.path.join(HERE, family + ".py")
    if not os.path.exists(script):
        return [], {}, "no such script"
    with tempfile.TemporaryDirectory() as scratch:
        problem = None
        began = time.time()
        try:
            arguments = [a.replace("{folder}", scratch) for a in FAMILIES[family]]
            done = subprocess.run([sys.executable, script] + arguments + extra, cwd=ROOT, timeout=limit_s,
                                  env=dict(os.environ, OUTDIR=scratch), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            print(done.stdout[-4000:], flush=True)
            if done.returncode != 0:
                problem = f"exit status {done.returncode}: " + done.stdout[-600:]
        except subprocess.TimeoutExpired as e:
            text = e.stdout or b""
            problem = f"stopped after {limit_s:g} s: " + (text if isinstance(text, str) else text.decode(errors="replace"))[-600:]
        rows, rest, missing = read_rows(scratch, family)
        print(f"== {family}: {len(rows)} rows, {time.time() - began:.1f} s{'' if not problem else ', FAILED'}", flush=True)
        problem = problem or missing
        return rows, rest, problem and problem.replace(ROOT + os.sep, "").replace(sys.prefix + os.sep, "")


def write_atomically(path, data):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".part", "w") as f:
        json.dump(data, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results", "h200", "targets.json"))
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--limit", type=float, default=240, help="seconds for each family")
    parser.add_argument("--args", default="", help="extra arguments for every family's script")
    options = parser.parse_args()
    merged = dict(cases=[], failed={}, measured=datetime.date.today().isoformat(), versions=versions(),
                  command="python3 bench/targets/run_all.py " + " ".join(
                      a for a in sys.argv[1:] if not os.path.isabs(a) and a != "--out"))
    wanted = [f for f in options.families.split(",") if f]
    if not set(wanted) <= set(FAMILIES):
        parser.error("families are " + ", ".join(FAMILIES))
    for family in wanted:
        rows, rest, problem = run_family(family, options.limit, options.args.split())
        merged["cases"] += rows
        if rest:
            merged[family] = rest
        if problem:
            merged["failed"][family] = problem
        write_atomically(options.out, merged)  # after every family: a run cut short keeps what it has
    for family in dict.fromkeys(r["family"] for r in merged["cases"]):
        ratios = [r["ratio"] for r in merged["cases"] if r["family"] == family and r["ratio"]]
        if ratios:
            print(f"{family:10s} {len(ratios):3d} cases, ratio to peer: geometric mean {geometric_mean(ratios):.3f}, "
                  f"worst {min(ratios):.3f}")
    for family, why in merged["failed"].items():
        print(f"{family:10s} FAILED: {why.splitlines()[0] if why else ''}")
    return 1 if merged["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
