#!/usr/bin/env python3
"""KernelBench tasks on this machine's GPU: generated kernels against the task's own module.

    python3 bench/kernelbench/prepare.py TASKS build/kernelbench          # no GPU: import, generate, prove
    python3 bench/kernelbench/run.py TASKS build/kernelbench --level 1 --out bench/results/h200/kernelbench --seconds 240

TASKS is KernelBench's own folder (level1/, level2/), fetched, never committed. A task is right by the official gate (five seeds of random inputs,
allclose 1e-4) and by ours: against fp64, relative to max(|x|, root mean square), on the task's inputs and on wide normal ones, the error is at most
twice that of the framework's own result, or 2e-5. Where samples do not depend on one another (no batch norm), fp64 is computed for four of them.
Dropout is judged with torch's own module made to use the numbers that ours draws. Times are medians of CUDA events with L2 flushed before each call,
the contenders in turn. --compile-times FILE takes those of torch.compile from an earlier measurement on the same kind of machine. All kernels are
compiled first, side by side. What was measured is kept: a second run goes on with the rest (--again measures anew).
"""
import argparse
import concurrent.futures
import gc
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))


def number_of(path):
    return int(re.match(r"(\d+)_", path.name).group(1))


def load_task(path):
    import torch
    scope = runpy.run_path(str(path), run_name="tilewright_task")
    torch.manual_seed(42)
    torch.cuda.manual_seed_all(42)
    with torch.device("cuda"):
        model = scope["Model"](*scope["get_init_inputs"]()).cuda()
    return model, scope["get_inputs"]


def inputs_of(get_inputs, seed):
    import torch
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    with torch.device("cuda"):
        return [x.cuda() if isinstance(x, torch.Tensor) else x for x in get_inputs()]


def compiled_for(folder, model):
    from tilewright.compiled import Compiled, read_generated
    from tilewright.graph import parameter_name
    source, plan, report = read_generated(folder)
    state = {parameter_name(n): v for n, v in [*model.named_parameters(), *model.named_buffers()]}
    return Compiled(source, plan, report, state)


def relative(actual, exact):
    """The largest error relative to max(|exact|, root mean square)."""
    import torch
    exact, actual = exact.double(), actual.double()
    same = (exact == actual) | (torch.isnan(exact) & torch.isnan(actual))
    rms = exact[torch.isfinite(exact)].square().mean().sqrt()
    error = torch.where(same, torch.zeros_like(exact), (actual - exact).abs() / torch.maximum(exact.abs(), rms).clamp_min(1e-30))
    return float(error.nan_to_num(nan=float("inf")).max())


def shared_draws(plan):
    """torch's dropout by the same numbers as ours: drawn uniformly, in the order of the calls."""
    import torch
    if not any("random" in about for about in plan["inputs"]):
        return

    def dropout(x, p=0.5, training=True, inplace=False):
        return torch.where(torch.rand(x.shape, device=x.device) < 1 - p, x / (1 - p), 0) if training else x
    torch.nn.functional.dropout = dropout


def called(call, inputs, seed=7):
    import torch
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    with torch.no_grad():
        return call(*inputs)


def official(model, ours, get_inputs, trials):
    import torch
    for trial in range(trials):
        inputs = inputs_of(get_inputs, 42 + trial)
        expected, actual = called(model, inputs), called(ours, inputs)
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return f"{tuple(actual.shape)} of {actual.dtype}, not {tuple(expected.shape)} of {expected.dtype}"
        if not torch.allclose(actual, expected, atol=1e-4, rtol=1e-4):
            return f"differs by up to {float((actual - expected).abs().max()):.3g} (seed {42 + trial})"
        del inputs, expected, actual
    return ""


def independent(model, inputs, output):
    """Whether fp64 may be computed for a few samples: each output sample hangs on its own input sample."""
    import torch
    coupled = any("BatchNorm" in type(m).__name__ or "Dropout" in type(m).__name__ for m in model.modules())
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    return not coupled and any("Conv" in type(m).__name__ for m in model.modules()) and len(tensors) == 1 and tensors[0].dim() > 2 and output.dim() > 0 and output.shape[0] == tensors[0].shape[0]


def stricter(model, ours, get_inputs):
    """The worst error of ours and of torch's, against fp64, and what is wrong."""
    import copy
    import torch
    exact_model = copy.deepcopy(model).double()
    tensor = torch.is_tensor
    figures = {}
    for kind in ("task", "wide"):
        inputs = inputs_of(get_inputs, 1234)
        if kind == "wide":
            inputs = [torch.randn_like(x) * 3 if tensor(x) and x.is_floating_point() else x for x in inputs]
        expected, actual = called(model, inputs), called(ours, inputs)
        if independent(model, inputs, actual):
            few = sorted({0, 1, actual.shape[0] // 2, actual.shape[0] - 1})
            inputs, expected, actual = [x[few] if tensor(x) else x for x in inputs], expected[few], actual[few]
        if sum(x.numel() for x in inputs if tensor(x)) > 6e8:
            figures[kind] = "too large for fp64"
            continue
        exact = called(exact_model, [x.double() if tensor(x) and x.is_floating_point() else x for x in inputs])
        figures[kind] = {"ours": relative(actual, exact), "torch": relative(expected, exact)}
        del inputs, expected, actual, exact
        torch.cuda.empty_cache()
    wrong = ""
    for kind, f in figures.items():
        if isinstance(f, dict) and f["ours"] > max(2 * f["torch"], 2e-5):
            wrong = f"{kind} inputs: error {f['ours']:.2e} against fp64, torch's is {f['torch']:.2e}"
    return figures, wrong


def timed(contenders, inputs, budget):
    """Median microseconds of each, in turn; L2 is flushed before each call."""
    import torch
    flush = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    samples = [[] for _ in contenders]
    with torch.no_grad():
        for call in contenders:
            for _ in range(2):
                call(*inputs)
        torch.cuda.synchronize()
        start = time.time()
        while len(samples[0]) < 20 and (len(samples[0]) < 3 or time.time() - start < budget):
            for call, times in zip(contenders, samples):
                flush.fill_(0)
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                result = call(*inputs)
                end.record()
                torch.cuda.synchronize()
                del result
                times.append(begin.elapsed_time(end) * 1000)
    return [sorted(t)[len(t) // 2] for t in samples]


def measure(path, folder, options):
    import torch
    row = {"task": f"{path.parent.name}/{path.name}", "official": False, "ours": False, "proved": False, "ours_us": None, "eager_us": None, "compile_us": None, "rewrites": False}
    report = json.loads((folder / "report.json").read_text())
    row["proved"] = report["proved"]
    row["kernels"] = len(report["kernels"])
    model, get_inputs = load_task(path)
    begin = time.time()
    ours = compiled_for(folder, model)
    shared_draws(ours.plan)
    row["load_s"] = round(time.time() - begin, 2)
    why = official(model, ours, get_inputs, options.trials)
    row["official"] = not why
    if why:
        row["why"] = why
    figures, wrong = stricter(model, ours, get_inputs)
    row["errors"], row["ours"] = figures, not wrong and not why
    if wrong:
        row["why_ours"] = wrong
    torch.cuda.empty_cache()
    inputs = inputs_of(get_inputs, 42)
    contenders = [ours, model]
    if options.compile:
        contenders.append(torch.compile(model))
    times = timed(contenders, inputs, options.each)
    row["ours_us"], row["eager_us"] = times[:2]
    if options.compile:
        row["compile_us"] = times[2]
    elif options.compile_times:
        recorded = json.loads(options.compile_times.read_text()).get(f"L{path.parent.name[-1]}", {}).get(path.stem)
        if recorded and recorded.get("compile_ms"):
            row["compile_us"], row["compile_from"] = recorded["compile_ms"] * 1000, "an earlier measurement"
    return row


def compile_all(folders, program):
    """The kernels of all tasks into the cache, as many at once as there are processors."""
    begin = time.time()

    def one(folder):
        done = subprocess.run([program, "emit", str(folder / "kernels.py"), "--to", "report", "--json"], capture_output=True, text=True)
        return folder.name, done.returncode, (done.stderr or "").strip()[-300:]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, text in pool.map(one, folders):
            if code not in (0, 1):
                print(f"{name}: {text}", flush=True)
    print(f"{len(folders)} tasks compiled in {time.time() - begin:.1f} s", flush=True)


def summary(rows, level):
    import math
    right = [r for r in rows if r["official"] and r["ours"]]
    proved = [r for r in right if r["proved"]]
    ratios = [r["eager_us"] / r["ours_us"] for r in right if r["ours_us"] and r["eager_us"]]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0
    return {"level": level, "measured": len(rows), "official": sum(r["official"] for r in rows), "right_by_both": len(right), "right_and_proved": len(proved),
            "geomean_over_eager_of_right": round(mean, 3), "not_slower_than_eager": sum(x >= 1 for x in ratios)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", type=pathlib.Path)
    parser.add_argument("generated", type=pathlib.Path)
    parser.add_argument("--level", type=int, action="append")
    parser.add_argument("--only", help="numbers of tasks, with commas between")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=240, help="of the whole run")
    parser.add_argument("--each", type=float, default=0.4, help="seconds of timing for one task")
    parser.add_argument("--trials", type=int, default=2, help="seeds of the official gate (it has 5)")
    parser.add_argument("--compile", action="store_true", help="also time torch.compile")
    parser.add_argument("--compile-times", type=pathlib.Path, help="times of torch.compile that were measured before, in JSON")
    parser.add_argument("--program", help="tilewright; with it all kernels are compiled first")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    import torch
    begin = time.time()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = {int(n) for n in options.only.split(",")} if options.only else None
    for level in options.level or [1, 2]:
        out = options.out / f"level{level}.json"
        rows = {} if options.again or not out.exists() else {r["task"]: r for r in json.loads(out.read_text())["tasks"]}
        files = sorted((options.tasks / f"level{level}").glob("*.py"), key=number_of)
        if options.program:
            folders = [options.generated / f"L{level}-{number_of(p)}" for p in files if wanted is None or number_of(p) in wanted]
            compile_all([f for f in folders if (f / "kernels.py").exists()], options.program)
        for path in files:
            key, folder = f"{path.parent.name}/{path.name}", options.generated / f"L{level}-{number_of(path)}"
            if (wanted is not None and number_of(path) not in wanted) or key in rows and rows[key].get("ours_us"):
                continue
            if not (folder / "plan.json").exists():
                rows[key] = {"task": key, "official": False, "ours": False, "proved": False, "ours_us": None, "eager_us": None, "compile_us": None, "rewrites": False, "why": "not generated"}
                continue
            if time.time() - begin > options.seconds:
                break
            try:
                row = measure(path, folder, options)
            except Exception as error:  # one task must not end the run
                row = {"task": key, "official": False, "ours": False, "proved": False, "ours_us": None, "eager_us": None, "compile_us": None, "rewrites": False,
                       "why": "".join(traceback.format_exception_only(type(error), error)).strip()[:400]}
            gc.collect()
            torch.cuda.empty_cache()
            torch._dynamo.reset()
            rows[key] = row
            ratio = f"{row['eager_us'] / row['ours_us']:.2f}x" if row["ours_us"] else "-"
            print(f"{time.time() - begin:6.1f} s  L{level}-{number_of(path):<4} {'right' if row['official'] and row['ours'] else 'WRONG'} {'proved' if row['proved'] else '      '} {ratio:>7}  {row.get('why', row.get('why_ours', ''))[:110]}", flush=True)
            ordered = sorted(rows.values(), key=lambda r: int(re.search(r"/(\d+)_", r["task"]).group(1)))
            out.write_text(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "summary": summary(ordered, level), "tasks": ordered}, indent=1) + "\n")
        if rows:
            ordered = sorted(rows.values(), key=lambda r: int(re.search(r"/(\d+)_", r["task"]).group(1)))
            out.write_text(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "summary": summary(ordered, level), "tasks": ordered}, indent=1) + "\n")
            print(json.dumps(summary(ordered, level)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
