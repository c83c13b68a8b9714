#!/usr/bin/env python3
"""The agent on its tasks: every run, its best kernel beside kernels/ and the peer, and the table of docs/agent.md.

    python3 bench/agent_suite.py run --program tilewright --out FOLDER [--tasks gemm softmax ...] [--steps 40] [--seconds 0]
    python3 bench/agent_suite.py compare --program tilewright --out FOLDER [--rounds 20]
    python3 bench/agent_suite.py table FOLDER

`run` optimises all tasks at once, each from an empty memory of its own (proofs and compilers use the processors side by side; on the GPU one process at a time
works) and exports each journal as FOLDER/TASK.json. `compare` times each best kernel and the kernels of kernels/ that do the same work in turn, in one worker
(ours, theirs, ours, theirs, ...), into FOLDER/compare.json. The peer (cuBLASLt or torch) was timed by the run itself, interleaved with the best kernel.
The share in the table is of the better of both.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

TASKS = ["gemm", "softmax", "layernorm", "gelu", "attention_causal", "grouped_gemm",
         "gemm_bias_relu", "gemm_nn", "softmax_f32", "layernorm_residual", "swiglu", "max_rows"]

# Kernels of kernels/ that do a task's work: the same computation, or (with a note) one that moves and multiplies as much.
COUNTERPARTS = {
    "gemm": [{"file": "kernels/gemm_sm90.py", "kernel": "gemm", "sizes": {"M": 4096, "N": 4096, "K": 4096}}],
    "softmax": [{"file": "kernels/softmax_sm90.py", "kernel": "softmax", "constants": {"T": "bf16"}, "sizes": {"M": 16384, "N": 4096}}],
    "layernorm": [{"file": "kernels/layernorm_sm90.py", "kernel": "layernorm", "constants": {"T": "bf16"}, "sizes": {"M": 16384, "N": 4096}, "scalars": {"eps": 1e-5}}],
    "gelu": [{"file": "kernels/activations.py", "kernel": "gelu", "constants": {"T": "bf16"}, "sizes": {"N": 16384 * 4096}}],
    "attention_causal": [{"file": "kernels/attention_sm90.py", "kernel": "attention_causal", "constants": {"C": 3, "BN": 80, "STAGES": 4, "D": 128, "G": 1},
                          "sizes": {"B": 4, "HK": 32, "S": 4096, "T": 4096}, "scalars": {"scale": 0.12751743}}],
    "grouped_gemm": [{"file": "kernels/grouped_gemm_sm90.py", "kernel": "grouped_gemm", "sizes": {"P": 8192, "E": 8, "N": 14336, "K": 4096, "BATCHES": 5}}],
    "gemm_bias_relu": [{"file": "kernels/gemm_fused_sm90.py", "kernel": "gemm_bias_relu", "sizes": {"M": 8192, "N": 4096, "K": 2048}, "note": "bf16 instead of f16"}],
    "gemm_nn": [{"file": "kernels/gemm_forms_sm90.py", "kernel": "gemm_tt", "sizes": {"M": 4096, "N": 8192, "K": 4096}},
                {"file": "kernels/gemm_deferred_sm90.py", "kernel": "gemm_deferred_tt", "sizes": {"M": 4096, "N": 8192, "K": 4096}}],
    "softmax_f32": [{"file": "kernels/softmax_sm90.py", "kernel": "softmax", "constants": {"T": "f32"}, "sizes": {"M": 8192, "N": 8192}}],
    "layernorm_residual": [],
    "swiglu": [{"file": "kernels/activations.py", "kernel": "swiglu", "constants": {"T": "bf16"}, "sizes": {"M": 8192, "H": 14336}, "note": "both halves in one tensor"}],
    "max_rows": [{"file": "kernels/reductions_sm90.py", "kernel": "row_max", "constants": {"T": "f32"}, "sizes": {"M": 32768, "N": 8192}, "note": "without the absolute value"}],
}


def run_one(args, task):
    out = args.out
    command = [args.program, "optimize", str(ROOT / "tasks" / f"{task}.toml"), "--steps", str(args.steps), "--seed", str(args.seed), "--journal", str(out / f"{task}.db"),
               "--memory", str(out / f"{task}.mem.db"), "--html", str(out / f"{task}.html")]
    if args.seconds:
        command += ["--seconds", str(args.seconds)]
    if args.no_gpu:
        command.append("--no-gpu")
    with open(out / f"{task}.txt", "w") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT).returncode
    subprocess.run([args.program, "show", "last", "--journal", str(out / f"{task}.db"), "--export", str(out / f"{task}.json")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    return task, code


def run(args):
    args.out.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs or len(args.tasks)) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_one, args, t) for t in args.tasks]):
            task, code = done.result()
            last = [l for l in (args.out / f"{task}.txt").read_text().splitlines() if l.startswith("stopped")]
            print(f"{task}: exit {code}; {last[-1] if last else 'no result'}", flush=True)


def load(path):
    return json.loads(path.read_text())


def accepted(journal):
    return [s for s in journal["steps"] if s["outcome"] == "accepted"]


def compare(args):
    """Requests for one worker: our kernel and each counterpart in turn, twice over."""
    requests, owners = [], []
    for task in args.tasks:
        path = args.out / f"{task}.json"
        if not path.exists() or not accepted(load(path)):
            continue
        source = subprocess.run([args.program, "show", str(path), "--source"], capture_output=True, text=True, cwd=ROOT).stdout
        sizes, scalars = task_numbers(task)
        entries = [("ours", {"text": source, "kernel": task, "sizes": sizes, "scalars": scalars})]
        for c in COUNTERPARTS.get(task, []):
            entries.append((f"{c['file']} {c['kernel']}" + (f" ({c['note']})" if "note" in c else ""), {k: v for k, v in c.items() if k != "note"}))
        if len(entries) == 1:
            continue
        for _ in range(args.turns):
            for name, request in entries:
                requests.append(json.dumps({**request, "time": True, "rounds": args.rounds, "warmup_ms": 60}))
                owners.append((task, name))
    answers = subprocess.run([args.program, "bench", "--requests", "-"], input="\n".join(requests) + "\n", capture_output=True, text=True, cwd=ROOT)
    seen = {}
    for (task, name), line in zip(owners, [l for l in answers.stdout.splitlines() if l.startswith("{")]):
        evidence = json.loads(line)
        entry = seen.setdefault(task, {}).setdefault(name, {"us": [], "status": evidence.get("status")})
        if evidence.get("status") == "right" and "us" in evidence:
            entry["us"].append(round(evidence["us"], 3))
        else:
            entry["problem"] = evidence.get("message", evidence.get("status"))
    if answers.returncode not in (0, 1):
        print(answers.stderr[-2000:], file=sys.stderr)
    (args.out / "compare.json").write_text(json.dumps(seen, indent=1) + "\n")
    for task, entries in seen.items():
        print(task, {n: e["us"] or e.get("problem") for n, e in entries.items()}, flush=True)


def task_numbers(task):
    """Sizes and scalars of a task file: plain `NAME = NUMBER` lines, and `eps = { ..., value = NUMBER }`."""
    import re
    sizes, scalars, section = {}, {}, ""
    for line in (ROOT / "tasks" / f"{task}.toml").read_text().splitlines():
        if line.startswith("["):
            section = line.strip()
        elif section == "[sizes]" and (m := re.match(r"(\w+)\s*=\s*(\d+)", line)):
            sizes[m[1]] = int(m[2])
        elif section == "[scalars]" and (m := re.match(r"(\w+)\s*=.*value\s*=\s*([-+.\deE]+)", line)):
            scalars[m[1]] = float(m[2])
    return sizes, scalars


def rows(folder):
    compared = load(folder / "compare.json") if (folder / "compare.json").exists() else {}
    for task in TASKS:
        path = folder / f"{task}.json"
        if not path.exists():
            continue
        journal = load(path)
        taken = accepted(journal)
        best = taken[-1] if taken else None
        peer = journal["run"].get("facts", {}).get("peer", {})
        ratios = {}
        if peer.get("status") == "measured" and peer.get("ratio"):
            ratios[peer["name"]] = peer["ratio"]
        mine = compared.get(task, {}).get("ours", {}).get("us", [])
        for name, entry in compared.get(task, {}).items():
            if name != "ours" and entry["us"] and mine:
                ratios[name.split(" ")[0]] = statistics.median(entry["us"]) / statistics.median(mine)
        proved = all(s.get("verdict") == "proved" for s in taken)
        yield {"task": task, "candidates": len(journal["steps"]), "accepted": len(taken), "proved": proved, "first_us": taken[0].get("microseconds") if taken else None,
               "best_us": best.get("microseconds") if best else None, "roofline": best.get("roofline_share") if best else None, "ratios": ratios,
               "peer_problem": peer.get("why"), "path": ["first"] + [s["technique"] for s in taken[1:]]}


def table(folder):
    print("| task | candidates | accepted, all proved | first kernel, us | best, us | of the roofline | speed, times the peer's | times that of kernels/ | of the better |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    paths = []
    for r in rows(folder):
        peers = {n: v for n, v in r["ratios"].items() if not n.startswith("kernels/")}
        own = {n: v for n, v in r["ratios"].items() if n.startswith("kernels/")}
        text = lambda d: ", ".join(f"{v:.3f} ({n})" for n, v in d.items()) or "-"
        worst = f"{100 * min(r['ratios'].values()):.0f}%" if r["ratios"] else "-"
        number = lambda v: f"{v:.1f}" if v else "-"
        share = f"{100 * r['roofline']:.0f}%" if r["roofline"] else "-"
        print(f"| {r['task']} | {r['candidates']} | {r['accepted']}{'' if r['proved'] else ', NOT all proved'} | {number(r['first_us'])} | {number(r['best_us'])} | {share} | {text(peers)} | {text(own)} | {worst} |")
        paths.append(f"- {r['task']}: {' -> '.join(r['path'])}")
    print()
    print("\n".join(paths))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "compare"):
        p = commands.add_parser(name)
        p.add_argument("--program", default="tilewright")
        p.add_argument("--out", type=pathlib.Path, required=True)
        p.add_argument("--tasks", nargs="+", default=TASKS)
        if name == "run":
            p.add_argument("--steps", type=int, default=40)
            p.add_argument("--seconds", type=float, default=0)
            p.add_argument("--seed", type=int, default=1)
            p.add_argument("--jobs", type=int, default=0, help="tasks at a time; 0: all")
            p.add_argument("--no-gpu", action="store_true")
        else:
            p.add_argument("--rounds", type=int, default=20)
            p.add_argument("--turns", type=int, default=2)
    commands.add_parser("table").add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    if args.command == "table":
        return table(args.folder)
    args.program = os.path.abspath(args.program) if os.sep in args.program else args.program
    args.out = args.out.resolve()
    return run(args) if args.command == "run" else compare(args)


if __name__ == "__main__":
    main()
