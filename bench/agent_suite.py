#!/usr/bin/env python3
"""The agent on its tasks: every run, its best kernel beside kernels/ and the peer, and the table of docs/agent.md.

    python3 bench/agent_suite.py all --program tilewright --out FOLDER [--tasks gemm,softmax,...] [--steps 40] [--seconds 110]
    python3 bench/agent_suite.py run ...        the runs alone
    python3 bench/agent_suite.py compare ...    kernels/ beside the best kernels of FOLDER
    python3 bench/agent_suite.py table FOLDER

`run` optimises all tasks at once, each with an empty memory, in a folder of its own that holds the task and the peers: kernels/ is not there. Proofs and compilers use the processors side by side, what is
timed has the GPU for itself. The run times its best kernel in turn with the task's peer (cuBLASLt or torch). Each journal is exported as FOLDER/TASK.json when its run ends, or when this
program is told to (SIGTERM). `compare` times the best kernels and those of kernels/ that do the same work in turn, in one worker (ours, theirs, theirs, ours, ...), into FOLDER/compare.json.
`all` does both, compiles the kernels of kernels/ while the runs go on, and writes FOLDER/table.md. The share in the table is of the better of kernels/ and the peer.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import suite_inputs

ROOT = pathlib.Path(__file__).resolve().parent.parent

TASKS = ["gemm", "softmax", "layernorm", "gelu", "attention_causal", "grouped_gemm",
         "gemm_bias_relu", "gemm_nn", "softmax_f32", "layernorm_residual", "swiglu", "max_rows"]

# Kernels of kernels/ that do a task's work: the same computation, or (with a note) one that moves and multiplies as much.
COUNTERPARTS = {
    "gemm": [{"file": "kernels/gemm_sm90.py", "kernel": "gemm", "sizes": {"M": 4096, "N": 4096, "K": 4096}},
             {"file": "kernels/gemm_deferred_sm90.py", "kernel": "gemm_deferred_tn", "sizes": {"M": 4096, "N": 4096, "K": 4096}}],
    "softmax": [{"file": "kernels/softmax_sm90.py", "kernel": "softmax", "constants": {"T": "bf16"}, "sizes": {"M": 16384, "N": 4096}}],
    "layernorm": [{"file": "kernels/layernorm_sm90.py", "kernel": "layernorm", "constants": {"T": "bf16"}, "sizes": {"M": 16384, "N": 4096}, "scalars": {"eps": 1e-5}}],
    "gelu": [{"file": "kernels/activations.py", "kernel": "gelu", "constants": {"T": "bf16"}, "sizes": {"N": 16384 * 4096}}],
    "gemm_bias_relu": [{"file": "kernels/gemm_fused_sm90.py", "kernel": "gemm_bias_relu", "sizes": {"M": 8192, "N": 4096, "K": 2048}, "note": "bf16 instead of f16"}],
    "gemm_nn": [{"file": "kernels/gemm_deferred_sm90.py", "kernel": "gemm_tt", "sizes": {"M": 4096, "N": 8192, "K": 4096}},
                {"file": "kernels/gemm_deferred_sm90.py", "kernel": "gemm_deferred_tt", "sizes": {"M": 4096, "N": 8192, "K": 4096}}],
    "softmax_f32": [{"file": "kernels/softmax_sm90.py", "kernel": "softmax", "constants": {"T": "f32"}, "sizes": {"M": 8192, "N": 8192}}],
    "layernorm_residual": [],
    "swiglu": [{"file": "kernels/activations.py", "kernel": "swiglu", "constants": {"T": "bf16"}, "sizes": {"M": 8192, "H": 14336}, "note": "both halves in one tensor"}],
    "max_rows": [{"file": "kernels/reductions_sm90.py", "kernel": "row_max", "constants": {"T": "f32"}, "sizes": {"M": 32768, "N": 8192}, "note": "without the absolute value"}],
}


# Cases of suites whose constants and contents the comparison takes over, so that kernels/ shows its best.
CASES = {"grouped_gemm": ("grouped", "grouped_gemm bf16 E8 T4096 k2 4096->14336 routed", {}), "attention_causal": ("attention", "attention bf16 d128 causal S4096", {"HK": 32})}


def counterparts(task):
    """Requests for kernels of kernels/, and contents that our kernel must share with them."""
    if task not in CASES:
        return COUNTERPARTS[task], {}
    suite, name, sizes = CASES[task]
    case = next(c for c in load(ROOT / "bench" / "suites" / f"{suite}.json")["cases"] if c["case"] == name)
    request = {k: case[k] for k in ("file", "kernel", "constants", "scalars") if k in case} | {"sizes": case["sizes"] | sizes}
    if "inputs_from" not in case:
        return [request], {}
    made = suite_inputs.make(case["inputs_from"], case["sizes"], case["arguments"])   # the table of tiles is made with the routing, outside of the time
    starts = [sum(e < i for e in made["expert"]) for i in range(case["sizes"]["E"] + 1)]
    return [request | {"inputs": made}], {"expert": made["expert"], "starts": starts}


class Runs:
    """The optimisations in flight, and their journals in a folder of their own."""

    def __init__(self, args):
        self.args = args
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="agent-suite-"))
        self.processes = {}

    def one(self, task):
        args, folder = self.args, self.work / task
        folder.mkdir()
        shutil.copy(ROOT / "tasks" / f"{task}.toml", folder)
        for part in ("bench", "python"):   # what times the peers; not kernels/
            (folder / part).symlink_to(ROOT / part)
        command = [args.program, "optimize", f"{task}.toml", "--steps", str(args.steps), "--seed", str(args.seed), "--journal", "journal.db", "--memory", "memory.db", "--html", "page.html"]
        if args.seconds:
            command += ["--seconds", str(args.seconds)]
        command += args.options
        with open(folder / "log.txt", "w") as log:
            process = self.processes[task] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
            code = process.wait()
        self.export(task)
        return task, code

    def export(self, task):
        if (self.work / task / "journal.db").exists():
            subprocess.run([self.args.program, "show", "last", "--journal", "journal.db", "--export", str(self.args.out / f"{task}.json")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.work / task)

    def stop(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for task in self.processes:
            self.export(task)
        write_table(self.args.out)
        os._exit(1)


def compile_counterparts(args):
    """Into the cache that the comparison reads, beside the runs."""
    def one(c):
        words = [args.program, "emit", c["file"], "--kernel", c["kernel"], "--to", "report"]
        for name, value in c.get("constants", {}).items():
            words += ["--set", f"{name}={value}"]
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(one, [c for t in args.tasks for c in counterparts(t)[0]]))


def run(args):
    args.out.mkdir(parents=True, exist_ok=True)
    runs = Runs(args)
    signal.signal(signal.SIGTERM, runs.stop)
    with concurrent.futures.ThreadPoolExecutor(len(args.tasks)) as pool:
        for done in concurrent.futures.as_completed([pool.submit(runs.one, t) for t in args.tasks]):
            task, code = done.result()
            lines = (runs.work / task / "log.txt").read_text().splitlines()
            last = [l for l in lines if l.startswith("stopped")] or lines[-1:]
            print(f"{task}: exit {code}; {last[-1] if last else 'no output'}", flush=True)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    shutil.rmtree(runs.work, ignore_errors=True)


def load(path):
    return json.loads(path.read_text())


def accepted(journal):
    return [s for s in journal["steps"] if s["outcome"] == "accepted"]


def compare(args):
    """Requests for one worker: our kernel and each counterpart in turn. What is answered is on disk at once."""
    requests, owners = [], []
    for task in args.tasks:
        path = args.out / f"{task}.json"
        theirs, shared = counterparts(task)
        if not theirs or not path.exists() or not accepted(load(path)):
            continue
        source = subprocess.run([args.program, "show", str(path), "--source"], capture_output=True, text=True, cwd=ROOT).stdout
        sizes, scalars = task_numbers(task)
        entries = [("ours", {"text": source, "file": f"{task}.py", "kernel": task, "sizes": sizes, "scalars": scalars, "inputs": shared})]
        for c in theirs:
            entries.append((f"{c['file']} {c['kernel']}" + (f" ({c['note']})" if "note" in c else ""), {k: v for k, v in c.items() if k != "note"}))
        for turn in range(args.turns):
            for name, request in entries if turn % 2 == 0 else reversed(entries):   # who comes first finds a cooler GPU
                requests.append(json.dumps({**request, "time": True, "rounds": args.rounds, "warmup_ms": 40, "budget_ms": 300}))
                owners.append((task, name))
    if not requests:
        return
    path = args.out / "compare.json"
    seen = load(path) if path.exists() else {}
    for task, _ in owners:
        seen[task] = {}
    asked = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
    asked.write("\n".join(requests) + "\n")
    asked.flush()
    worker = subprocess.Popen([args.program, "bench", "--requests", asked.name], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    for (task, name), line in zip(owners, worker.stdout):
        evidence = json.loads(line)
        entry = seen[task].setdefault(name, {"us": [], "status": evidence.get("status")})
        if evidence.get("status") == "right" and "us" in evidence:
            entry["us"].append(round(evidence["us"], 3))
        else:
            entry["problem"] = evidence.get("message", evidence.get("status"))
        path.write_text(json.dumps(seen, indent=1) + "\n")
    worker.wait()


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
                ratios[name] = statistics.median(entry["us"]) / statistics.median(mine)
        proved = all(s.get("verdict") == "proved" for s in taken)
        yield {"task": task, "candidates": len(journal["steps"]), "accepted": len(taken), "proved": proved, "first_us": taken[0].get("microseconds") if taken else None,
               "best_us": best.get("microseconds") if best else None, "roofline": best.get("roofline_share") if best else None, "ratios": ratios,
               "peer_problem": peer.get("why"), "end": f"{sum(s.get('seconds', 0) for s in journal['steps']):.0f} s, {journal['run'].get('reason') or 'not ended'}", "path": ["first"] + [s["technique"] for s in taken[1:]]}


def table(folder):
    """The table and the paths as Markdown."""
    out = ["| task | candidates | accepted, all proved | first kernel, us | best, us | of the roofline | speed, times the peer's | times that of kernels/ | of the better |",
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    paths = []
    for r in rows(folder):
        peers = {n: v for n, v in r["ratios"].items() if not n.startswith("kernels/")}
        own = {n: v for n, v in r["ratios"].items() if n.startswith("kernels/")}
        text = lambda d: ", ".join(f"{v:.3f} ({n})" for n, v in d.items()) or "-"
        worst = f"{100 * min(r['ratios'].values()):.0f}%" if r["ratios"] else "-"
        number = lambda v: f"{v:.1f}" if v else "-"
        share = f"{100 * r['roofline']:.0f}%" if r["roofline"] else "-"
        out.append(f"| {r['task']} | {r['candidates']} | {r['accepted']}{'' if r['proved'] else ', NOT all proved'} | {number(r['first_us'])} | {number(r['best_us'])} | {share} | "
                   f"{text(peers)} | {text(own)} | {worst} |")
        paths.append(f"- {r['task']}: {' -> '.join(r['path'])} ({r['end']})")
    return "\n".join(out + [""] + paths) + "\n"


def write_table(folder):
    text = table(folder)
    (folder / "table.md").write_text(text)
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("all", "run", "compare"):
        p = commands.add_parser(name)
        p.add_argument("--program", default="tilewright")
        p.add_argument("--out", type=pathlib.Path, required=True)
        p.add_argument("--tasks", type=lambda text: text.split(","), default=TASKS)
        if name != "compare":
            p.add_argument("--steps", type=int, default=40)
            p.add_argument("--seconds", type=float, default=110, help="of each run, all of which go on at once; 0: no limit")
            p.add_argument("--seed", type=int, default=1)
            p.add_argument("--options", type=str.split, default=[], help="more options of `tilewright optimize`, as one word: --options=\"--without knowledge\"")
        if name != "run":
            p.add_argument("--rounds", type=int, default=12)
            p.add_argument("--turns", type=int, default=4)
    commands.add_parser("table").add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    if args.command == "table":
        return print(table(args.folder))
    args.program = os.path.abspath(args.program) if os.sep in args.program else args.program
    args.out = args.out.resolve()
    if unknown := [t for t in args.tasks if t not in TASKS]:
        parser.error(f"no task of this suite: {', '.join(unknown)}; there are {', '.join(TASKS)}")
    if args.command == "all":
        beside = concurrent.futures.ThreadPoolExecutor(1).submit(compile_counterparts, args)
        run(args)
        beside.result()
        compare(args)
        write_table(args.out)
    else:
        (run if args.command == "run" else compare)(args)


if __name__ == "__main__":
    main()
