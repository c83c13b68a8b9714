"""Every kernel and program of kernels/ (and of tests/gpu/kernels/) on the GPU against fp64, over tiny, ragged and larger shapes and two seeds.

    python3 bench/check_kernels.py PROGRAM [OUT.json]                PROGRAM is the tilewright binary
    python3 bench/check_kernels.py PROGRAM OUT.json --sanitizer      each kernel once on a small shape under compute-sanitizer's tools

A worker answers all requests of a file (`bench --requests -`), so a kernel that faults costs itself. Index inputs hold what their promises say,
drawn from the seed. Exit status 1 when one is not right, or a tool reports an error.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import suite_inputs  # noqa: E402

# Every size name that kernels use; a kernel takes those it has.
SHAPES = [
    dict(M=1, N=8, K=8, B=1, H=1, HK=1, S=1, T=1, P=1, R=1, G=1, D=64, L=1),
    dict(M=37, N=72, K=40, B=2, H=3, HK=2, S=65, T=65, P=3, R=5, G=2, D=64, L=3),
    dict(M=100, N=301, K=64, B=1, H=2, HK=1, S=130, T=200, P=3, R=7, G=3, D=128, L=17),
    dict(M=300, N=1000, K=136, B=2, H=2, HK=2, S=256, T=256, P=4, R=64, G=4, D=128, L=64),
    dict(M=513, N=4096, K=520, B=1, H=4, HK=3, S=300, T=177, P=2, R=100, G=2, D=128, L=100),
    dict(M=9, N=40000, K=72, B=1, H=1, HK=1, S=70, T=3000, P=1, R=3, G=1, D=64, L=5),
    dict(M=3, N=150001, K=64, B=3, H=1, HK=1, S=1, T=129, P=1, R=1, G=8, D=128, L=1),
    dict(M=1024, N=2048, K=1024, B=1, H=8, HK=2, S=1024, T=1024, P=2, R=512, G=8, D=128, L=512),
]
# Reductions over the middle axis of X[A, R, B]: B is long there, and a batch elsewhere.
AXES = ([dict(A=1, R=1, B=8), dict(A=3, R=37, B=72), dict(A=5, R=1000, B=264), dict(A=64, R=128, B=1024), dict(A=1, R=4097, B=256)], None, {})
# Sums that round to 16 bits at every step drift with the number of terms: they are tried where each step is exact.
EXACT_SUMS = ([dict(M=1, N=8), dict(M=37, N=72), dict(M=100, N=301), dict(M=256, N=1000)], "signs", dict(tensor="X"))
# Rows sorted by expert: fewer rows than experts, ragged groups, empty ones.
EXPERTS = ([dict(T=3, P=5, E=8, N=8, K=8, BATCHES=1), dict(T=50, P=100, E=4, N=72, K=40, BATCHES=1), dict(T=300, P=600, E=8, N=264, K=136, BATCHES=2), dict(T=700, P=1400, E=32, N=520, K=264, BATCHES=5)], None, {})
# P sources and V places of scatters; rows of a table and the positions that name them.
SCATTERS = [dict(P=1, V=1, N=8), dict(P=37, V=5, N=72), dict(P=1000, V=301, N=264), dict(P=5000, V=70, N=1000), dict(P=300, V=4099, N=4096)]
POSITIONS = [dict(L=1, P=1, V=1, N=8), dict(L=37, P=50, V=5, N=72), dict(L=600, P=500, V=1001, N=1032), dict(L=64, P=3000, V=70, N=4096)]
# file or kernel -> (shapes, function of suite_inputs, its arguments)
CONTENTS = {
    "add_f16": EXACT_SUMS,
    "add_bf16": EXACT_SUMS,
    "grouped_gemm_sm80.py": ([dict(T=50, P=100, E=4, N=72, K=40, TILES=8), dict(T=300, P=600, E=8, N=264, K=136, TILES=20)], "routed_tiles", dict(top_k=2, balanced=False, tile=64)),
    "tall_reductions.py": AXES,
    "embedding_gradient": (POSITIONS, "sorted_tokens", {}),
    "embedding_gradient_atomic": (SCATTERS, "places", dict(tensor="token")),
    "weighted_rows_atomic": (SCATTERS, "places", dict(tensor="token")),
    "bincount": (SCATTERS, "places", dict(tensor="X")),
    "weighted_bincount": (SCATTERS, "places", dict(tensor="X")),
    "histogram": (SCATTERS, None, {}),
    "grouped_gemm_sm90.py": EXPERTS,
    "gathered_swiglu_sm90.py": EXPERTS,
}
TOOLS = ("memcheck", "synccheck", "racecheck")
# Reports that are no errors, and why.
EXPLAINED = {("synccheck", "gathered_swiglu"): "gate and up meet at a named barrier by two instructions, which PTX allows and synccheck takes for divergence (bench/probes/synccheck_barrier.cu)"}


def ask(program, requests, seconds=900):
    done = subprocess.run([program, "bench", "--requests", "-"], input="".join(json.dumps(r) + "\n" for r in requests), capture_output=True, text=True, timeout=seconds, cwd=ROOT)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(requests):
        raise SystemExit(f"{program} answered {len(answers)} of {len(requests)} requests: {done.stderr[-500:]}")
    return answers


def kernels_of(program, file):
    """Their names, as the program has them: a file may put names together."""
    done = subprocess.run([program, "emit", str(file), "--to", "plan"], capture_output=True, text=True, cwd=ROOT)
    return [k["name"] for k in json.loads(done.stdout)["kernels"]] if done.returncode == 0 else []


def requests_of(program):
    files = sorted((ROOT / "kernels").glob("*.py")) + sorted((ROOT / "tests" / "gpu" / "kernels").glob("*.py"))
    requests = []
    for file in files:
        text = file.read_text()
        # A program before its kernels; else every kernel that the file makes.
        programs = re.findall(r"@tw\.program\(.*?\)\s*def (\w+)\(", text, re.S)
        names = dict.fromkeys(programs, "program") or dict.fromkeys(kernels_of(program, file), "kernel")
        known = set(" ".join(re.findall(r"tw\.sizes\(\"(.*?)\"\)", text)).split())
        choices = {}  # a constant of a size's name takes the shape's value where it is one of its choices
        for constant, listed in re.findall(r"\b([A-Z]+): tw\.const\((.*?)\)", text):
            choices.setdefault(constant, set()).update(re.findall(r"\d+", listed))
        types = re.search(r"\b(D?T): tw\.each\((.*?)\)", text)  # element types that a kernel comes in; a program says its own
        for name, kind in names.items():
            parameter, types_of_kernel = (types.group(1), [t.strip() for t in types.group(2).split(",")]) if types and kind == "kernel" else (None, [])
            shapes, function, arguments = CONTENTS.get(name) or CONTENTS.get(file.name) or (AXES if name.startswith("axis_") else (SHAPES, None, {}))
            for sizes in shapes:
                sizes = {n: v for n, v in sizes.items() if (n in known or str(v) in choices.get(n, ())) and n != parameter}
                for seed, constants in itertools.product((1, 2), [{parameter: t} for t in types_of_kernel] or [{}]):
                    request = {"file": str(file), "sizes": sizes, "constants": constants, "seed": seed, "kernel": name}
                    if function:
                        request["inputs"] = suite_inputs.make(function, sizes, {**arguments, "seed": seed})
                    requests.append(request)
    return requests


def sanitize(program, requests, seconds):
    """Every kernel on its first shape that is taken, under each tool; a case that outlasts `seconds` says nothing."""
    groups = {}
    for r in requests:
        if r["seed"] == 1:
            groups.setdefault((r["file"], r["kernel"]), []).append(({**r["sizes"], **r.get("constants", {})}, r.get("inputs")))

    def one(job):
        (file, kernel), shapes, tool = job
        for sizes, inputs in shapes[1:] + shapes[:1]:  # the first shape is the smallest
            words = [program, "run", file, "--kernel", kernel, "--target", "gpu", "--sanitizer", tool, "--timeout", str(seconds), "--set", ",".join(f"{n}={v}" for n, v in sizes.items()), "--json"]
            with tempfile.NamedTemporaryFile("w", suffix=".json") as given:
                if inputs:
                    json.dump(inputs, given)
                    given.flush()
                    words += ["--inputs", given.name]
                done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
            row = {"file": os.path.basename(file), "kernel": kernel, "sizes": sizes, "tool": tool}
            try:
                answer = json.loads(done.stdout)
            except json.JSONDecodeError:
                return {**row, "problem": (done.stdout + done.stderr)[-300:]}
            status = (answer.get("evidence") or {}).get("status", "")
            if status == "refused":
                continue
            return {**row, "result": status, **{k: answer[k] for k in ("errors", "problem", "report") if k in answer}}
        return {"file": os.path.basename(file), "kernel": kernel, "tool": tool, "problem": "no shape was taken"}

    jobs = [(k, s, tool) for tool in TOOLS for k, s in groups.items()]
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(12, os.cpu_count() or 1)) as pool:
        return list(pool.map(one, jobs))


def write(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--sanitizer", action="store_true")
    parser.add_argument("--seconds", type=float, default=40, help="with --sanitizer: limit of one case")
    parser.add_argument("--only", help="files to run, as name,name,...; what OUT has of the others stays")
    o = parser.parse_args()
    requests = requests_of(o.program)
    kept = []
    if o.only:
        names = {n if n.endswith(".py") else n + ".py" for n in o.only.split(",")}
        requests = [r for r in requests if os.path.basename(r["file"]) in names]
        if o.out and os.path.exists(o.out):
            present = {p.name for p in (ROOT / "kernels").glob("*.py")} | {p.name for p in (ROOT / "tests" / "gpu" / "kernels").glob("*.py")}
            with open(o.out) as earlier:
                kept = [r for r in json.load(earlier)["cases"] if r["file"] in present - names]
    if o.sanitizer:
        rows = sanitize(o.program, requests, o.seconds) + kept
        for r in rows:
            if r.get("errors", 0) > 0 and (r["tool"], r["kernel"]) in EXPLAINED:
                r["explained"] = EXPLAINED[r["tool"], r["kernel"]]
        totals = {t: {"clean": sum(r["tool"] == t and r.get("errors") == 0 and r.get("result") == "right" for r in rows),
                      "with_errors": sum(r["tool"] == t and r.get("errors", 0) > 0 and "explained" not in r for r in rows),
                      "explained": sum(r["tool"] == t and "explained" in r for r in rows),
                      "no_answer": sum(r["tool"] == t and "problem" in r for r in rows)} for t in TOOLS}
        for r in rows:
            if r.get("errors") != 0 or r.get("result") != "right":
                print(r["tool"], r["file"], r["kernel"], r.get("sizes"), r.get("errors"), r.get("result"), r.get("problem", "")[:150])
        print(totals)
        if o.out:
            write(o.out, {"totals": totals, "cases": rows, "command": "python3 bench/check_kernels.py build/bin/tilewright bench/results/h200/sanitizer.json --sanitizer"})
        return 1 if any(t["with_errors"] for t in totals.values()) else 0
    # Files side by side: most of the time goes into compiling.
    groups = {}
    for r in requests:
        groups.setdefault(r["file"], []).append(r)
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(12, os.cpu_count() or 1)) as pool:
        answers = [a for some in pool.map(lambda g: ask(o.program, g), groups.values()) for a in some]
    rows, bad, seen = [], [], {}
    for a in answers:
        key = (os.path.basename(a.get("file", "")), a.get("kernel") or "")
        right = seen.setdefault(key, [0, 0])
        if a["status"] == "refused":  # sizes outside its assumptions
            right[1] += 1
            continue
        if a["status"] != "right":
            bad.append((key, a.get("sizes"), a["status"], a.get("message", "")[:300]))
            continue
        right[0] += 1
        rows.append({"file": key[0], "kernel": key[1], "sizes": a["sizes"], "seed": a["seed"], "registers": [r.get("registers") for r in a["resources"]],
                     "outputs": [{k: o[k] for k in ("output", "relative_error", "worst", "tolerance", "compared", "elements")} for o in a["check"]["outputs"]]})
    rows += kept
    never = [k for k, (right, _) in seen.items() if right == 0 and k[1]]
    for line in bad:
        print("not right:", line)
    for line in never:
        print("no shape was taken by", line)
    print(f"{len(rows)} runs right, {len(bad)} not, {len({(r['file'], r['kernel']) for r in rows})} kernels and programs")
    if o.out:
        versions = next((a["versions"] for a in answers if "versions" in a), {})
        write(o.out, {"right": len(rows), "not_right": [list(map(str, b)) for b in bad], "cases": rows, "versions": versions,
                      "command": "python3 bench/check_kernels.py build/bin/tilewright bench/results/h200/kernels.json"})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
