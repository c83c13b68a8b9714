"""Every row of src/target checked on a GPU with integer payloads.

What is expected comes from the C++ tables (`tilewright target cases`, `tilewright target convert`); this file only prepares
registers and memory, launches, and compares. One process per family, so that a trap or a hang costs that family only.

    python3 bench/probes/probe_target.py --tool build/bin/tilewright --out bench/results/h200/probes.json
"""
import argparse
import concurrent.futures
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]  # the families, and bench/harness.py
REPOSITORY = os.path.dirname(os.path.dirname(HERE))

# Family name -> seconds it may take. The order is the order of starting: long ones first.
FAMILIES = {"wgmma.0": 75, "wgmma.1": 75, "wgmma.2": 75, "wgmma.3": 75, "tma_load": 50, "tma_store": 50, "mma": 50,
            "convert": 60, "sums_mma": 60, "sums_wgmma": 60, "matrix_moves": 40, "shuffle": 40, "copies": 40, "multicast": 40,
            "mbarrier": 40, "reduce": 40, "barriers": 40, "registers": 40, "banks": 40,
            **{f"tma_illegal.{i}": 30 for i in range(16)}}


def find_tool():
    found = glob.glob(os.path.join(REPOSITORY, "build*/bin/tilewright")) + glob.glob(os.path.join(REPOSITORY, "dist/*/bin/tilewright"))
    if not found:
        sys.exit("tilewright was not found under build*/bin or dist/; build it or pass --tool")
    return max(found, key=os.path.getmtime)


def tool_command(tool):
    """`tilewright target ...`; a tool of another name takes the words after `target` itself."""
    return [tool, "target"] if os.path.basename(tool) == "tilewright" else [tool]


def run_family(family, tool, cases, seconds, folder):
    out = os.path.join(folder, family + ".json")
    command = [sys.executable, os.path.abspath(__file__), "--family", family, "--tool", tool, "--cases", cases, "--out", out]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        failure = None if done.returncode == 0 else (done.stderr or done.stdout).strip()[-1500:]
    except subprocess.TimeoutExpired as late:
        failure = f"no answer after {seconds} s; " + str(late.stderr or b"")[-500:]
    rows = []
    if os.path.exists(out):
        with open(out) as f:
            rows = [json.loads(line) for line in f if line.strip()]
    if failure:
        rows.append({"instruction": family, "variant": "the family stopped early", "checked": 0, "differences": 1,
                     "first": failure})
    return family, rows


def summarise(rows, versions, command):
    return {"rows": rows, "checked": sum(r["checked"] for r in rows), "differences": sum(r["differences"] for r in rows),
            "rows_with_differences": sum(1 for r in rows if r["differences"]), "versions": versions, "command": command}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", help="the tilewright binary (default: the newest under build*/bin)")
    parser.add_argument("--cases", help="output of `tilewright target cases` (default: made now)")
    parser.add_argument("--out", default=os.path.join(REPOSITORY, "bench", "results", "h200", "probes.json"))
    parser.add_argument("--only", help="families, comma separated")
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--family", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.tool = os.path.abspath(options.tool or find_tool())

    if options.family:
        import target_families
        target_families.run(options.family, tool_command(options.tool), options.cases, options.out)
        return

    folder = tempfile.mkdtemp(prefix="probe_target_")
    cases = options.cases
    if cases is None:
        cases = os.path.join(folder, "cases.json")
        with open(cases, "wb") as f:
            subprocess.run(tool_command(options.tool) + ["cases"], stdout=f, check=True)
    wanted = options.only.split(",") if options.only else list(FAMILIES)
    versions = subprocess.run([sys.executable, "-c", "import probe_common as t, json; print(json.dumps(t.versions()))"],
                              capture_output=True, text=True, cwd=HERE)
    versions = json.loads(versions.stdout) if versions.returncode == 0 else {"error": versions.stderr[-300:]}
    command = "python3 bench/probes/probe_target.py"
    rows = {}
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.workers) as pool:
        pending = [pool.submit(run_family, f, options.tool, cases, FAMILIES[f], folder) for f in wanted]
        for finished in concurrent.futures.as_completed(pending):
            family, got = finished.result()
            rows[family] = got
            merged = [r for f in FAMILIES for r in rows.get(f, [])]
            with open(options.out, "w") as f:
                summary = summarise(merged, versions, command)
                listed = summary.pop("rows")
                lines = ",\n".join(json.dumps(r) for r in listed)  # one row a line: a diff shows the row that changed
                f.write(json.dumps(summary)[:-1] + ', "rows": [\n' + lines + "\n]}\n")
            bad = [r for r in got if r["differences"]]
            print(f"{family}: {len(got)} rows, {sum(r['checked'] for r in got)} checked, {len(bad)} rows differ", flush=True)
            for r in bad[:8]:
                print(f"   {r['instruction']} [{r['variant']}] {r['differences']} of {r['checked']}: {r.get('first', '')[:600]}", flush=True)


if __name__ == "__main__":
    random.seed(1)
    main()
