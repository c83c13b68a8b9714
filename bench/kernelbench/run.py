#!/usr/bin/env python3
"""KernelBench tasks on this machine's GPU: generated kernels against the task's own module.

    python3 bench/kernelbench/prepare.py TASKS build/kernelbench          # no GPU: import, generate, prove
    python3 bench/kernelbench/run.py TASKS build/kernelbench --level 1 --out bench/results/h200/kernelbench --seconds 240

TASKS is KernelBench's own folder (level1/, level2/), fetched, never committed. A task is right by the official gate (five seeds of random inputs,
allclose 1e-4) and by ours: against fp64, relative to max(|x|, root mean square), on the task's inputs and on wide normal ones, the error is at most
twice that of the framework's own result, or 2e-5. Where samples do not depend on one another (no batch norm), fp64 is computed for four of them.
Dropout is judged with torch's own module made to use the numbers that ours draws. Times are medians of CUDA events with L2 flushed before each call,
the contenders in turn. Kernels are compiled side by side while tasks are tested; when all are, tasks are timed. --compile also times torch.compile: other
processes compile for it while the tests run (inductor.py). --compile-times FILE takes what they did not reach from an earlier measurement on the same kind
of machine, and says so. Every row is written when it is there: a second run goes on with the rest (--again measures anew).
"""
import argparse
import concurrent.futures
import contextlib
import gc
import json
import math
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


def number_in(row):
    return int(re.search(r"/(\d+)_", row["task"]).group(1))


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


@contextlib.contextmanager
def shared_draws(plan):
    """torch's dropout by the same numbers as ours: the words of a call are drawn first, each dropout is the next stream of them. Only for the gates: what is timed is torch's own."""
    import torch
    from tilewright._random import uniform
    words, streams, after = None, 0, None

    def dropout(x, p=0.5, training=True, inplace=False):
        nonlocal words, streams, after
        if not training or p == 0:
            return x
        state = (lambda: torch.cuda.get_rng_state(x.device)) if x.is_cuda else torch.get_rng_state
        if after is None or not torch.equal(state(), after):  # seeded again: another call of the model
            words, streams = torch.randint(-2**31, 2**31, (4,), dtype=torch.int32, device=x.device).tolist(), 0
            after = state()
        streams += 1
        return torch.where(uniform(x.shape, words, streams - 1, x.device) >= p, x / (1 - p), 0)
    own = torch.nn.functional.dropout
    if any("random" in about for about in plan["inputs"]):
        torch.nn.functional.dropout = dropout
    try:
        yield
    finally:
        torch.nn.functional.dropout = own


def called(call, inputs, seed=7):
    import torch
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    with torch.no_grad():
        return call(*inputs)


def official(model, ours, get_inputs, trials):
    import torch
    torch.manual_seed(42)
    for seed in [int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(trials)]:  # as KernelBench draws them
        inputs = inputs_of(get_inputs, seed)
        expected, actual = called(model, inputs), called(ours, inputs)
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return f"{tuple(actual.shape)} of {actual.dtype}, not {tuple(expected.shape)} of {expected.dtype}"
        if not torch.allclose(actual, expected, atol=1e-4, rtol=1e-4):
            return f"differs by up to {float((actual - expected).abs().max()):.3g} (seed {seed})"
        del inputs, expected, actual
    return ""


def independent(model, inputs, output):
    """Whether fp64 may be computed for a few samples: each output sample hangs on its own input sample."""
    import torch
    coupled = any("BatchNorm" in type(m).__name__ or "Dropout" in type(m).__name__ for m in model.modules())
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    return not coupled and any("Conv" in type(m).__name__ or "Pool" in type(m).__name__ for m in model.modules()) and len(tensors) == 1 and tensors[0].dim() > 2 and output.dim() > 0 and output.shape[0] == tensors[0].shape[0]


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


def empty_row(path, why=None):
    row = {"task": f"{path.parent.name}/{path.name}", "official": False, "ours": False, "proved": False, "ours_us": None, "eager_us": None, "compile_us": None, "rewrites": False}
    return dict(row, why=why) if why else row


def tested(path, folder, options):
    """Both gates; no times."""
    row = empty_row(path)
    report = json.loads((folder / "report.json").read_text())
    row["proved"] = report["proved"]
    row["kernels"] = len(report["kernels"])
    model, get_inputs = load_task(path)
    begin = time.time()
    ours = compiled_for(folder, model)
    with shared_draws(ours.plan):
        why = official(model, ours, get_inputs, options.trials)
        row["official"], row["trials"] = not why, options.trials
        if why:
            row["why"] = why
        row["errors"], wrong = stricter(model, ours, get_inputs)
    row["ours"] = not wrong and not why
    if wrong:
        row["why_ours"] = wrong
    row["test_s"] = round(time.time() - begin, 2)
    return row


def add_times(row, path, folder, options, compiled):
    """Ours, eager and, where asked for, torch.compile's, in turn."""
    import torch
    model, get_inputs = load_task(path)
    inputs = inputs_of(get_inputs, 42)
    contenders = [compiled_for(folder, model), model]
    if compiled:
        contenders.append(torch.compile(model))
    times = timed(contenders, inputs, options.each)
    row["ours_us"], row["eager_us"] = times[:2]
    row.pop("compile_from", None)
    if compiled:
        row["compile_us"] = times[2]
    elif options.compile_times:
        recorded = json.loads(options.compile_times.read_text()).get(f"L{path.parent.name[-1]}", {}).get(path.stem)
        if recorded and recorded.get("compile_ms"):
            row["compile_us"], row["compile_from"] = recorded["compile_ms"] * 1000, "an earlier measurement"


def measure(path, folder, options):
    row = tested(path, folder, options)
    add_times(row, path, folder, options, options.compile)
    return row


class Compilations:
    """The kernels of all tasks into the cache, as many tasks at once as there are processors; a task is waited for before it is tested."""

    def __init__(self, folders, program):
        self.begin, self.last, self.program = time.time(), time.time(), program
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        self.done = {folder: self.pool.submit(self.one, folder) for folder in folders}

    def one(self, folder):
        done = subprocess.run([self.program, "emit", str(folder / "kernels.py"), "--to", "report", "--json"], capture_output=True, text=True)
        self.last = time.time()
        if done.returncode not in (0, 1):
            print(f"{folder.name}: {(done.stderr or '').strip()[-300:]}", flush=True)

    def wait(self, folder):
        if folder in self.done:
            self.done[folder].result()

    def wait_all(self):
        self.pool.shutdown()
        print(f"{len(self.done)} tasks compiled in {self.last - self.begin:.1f} s", flush=True)


def compile_all(folders, program):
    Compilations(folders, program).wait_all()


def mean_of(ratios):
    return round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3) if ratios else None


def summary(rows, level):
    right = [r for r in rows if r["official"] and r["ours"]]
    timed_rows = [r for r in right if r["ours_us"] and r["eager_us"]]
    ratios = [r["eager_us"] / r["ours_us"] for r in timed_rows]
    now = [r for r in timed_rows if r["compile_us"] and "compile_from" not in r]
    return {"level": level, "tested": len(rows), "official": sum(r["official"] for r in rows), "right_by_both": len(right), "right_and_proved": sum(r["proved"] for r in right),
            "timed": len(timed_rows), "geomean_over_eager_of_right": mean_of(ratios), "not_slower_than_eager": sum(x >= 1 for x in ratios),
            "geomean_over_compile": mean_of([r["compile_us"] / r["ours_us"] for r in timed_rows if r["compile_us"]]),
            "compile_measured_here": len(now), "geomean_over_compile_measured_here": mean_of([r["compile_us"] / r["ours_us"] for r in now])}


class Run:
    """All tasks that were asked for: tests first, while torch.compile works in other processes, then times. Every row is written as soon as it is there."""

    def __init__(self, options):
        self.options, self.begin, self.rows, self.tasks = options, time.time(), {}, []
        named = set(filter(None, (options.only or "").split(",")))
        for level in options.level or [1, 2]:
            out = options.out / f"level{level}.json"
            self.rows[level] = {} if options.again or not out.exists() else {r["task"]: r for r in json.loads(out.read_text())["tasks"]}
            for path in sorted((options.tasks / f"level{level}").glob("*.py"), key=number_of):
                if not named or named & {str(number_of(path)), f"L{level}", f"L{level}-{number_of(path)}"}:
                    self.tasks.append((level, path, options.generated / f"L{level}-{number_of(path)}"))
        first = list(filter(None, (options.first or "").split(",")))
        self.tasks.sort(key=lambda t: first.index(t[2].name) if t[2].name in first else len(first))
        self.compilations = None

    def seconds(self):
        return time.time() - self.begin

    def keep(self, level, row, line=""):
        import torch
        self.rows[level][row["task"]] = row
        ordered = sorted(self.rows[level].values(), key=number_in)
        text = json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "summary": summary(ordered, level), "tasks": ordered}, indent=1) + "\n"
        (self.options.out / f"level{level}.json").write_text(text)
        if line:
            print(f"{self.seconds():6.1f} s  L{level}-{number_in(row):<4} {line}", flush=True)

    def guarded(self, work, level, path):
        """The row that work gives; what it raises is the row's reason. None: no memory left beside the other processes."""
        import torch
        try:
            return work()
        except torch.OutOfMemoryError as error:
            return None if self.warming() else dict(self.rows[level].get(f"{path.parent.name}/{path.name}") or empty_row(path), why=str(error)[:200])
        except Exception as error:  # one task must not end the run
            return dict(self.rows[level].get(f"{path.parent.name}/{path.name}") or empty_row(path), why="".join(traceback.format_exception_only(type(error), error)).strip()[:400])
        finally:
            gc.collect()
            torch.cuda.empty_cache()
            torch._dynamo.reset()

    def warming(self):
        return any(p.poll() is None for p in self.processes)

    def test_all(self):
        left = []
        for level, path, folder in self.tasks:
            key = f"{path.parent.name}/{path.name}"
            if self.seconds() > self.options.seconds or "errors" in self.rows[level].get(key, {}):
                continue
            if not (folder / "plan.json").exists():
                self.keep(level, empty_row(path, "not generated"), "not generated")
                continue
            if self.compilations:
                self.compilations.wait(folder)
            row = self.guarded(lambda: tested(path, folder, self.options), level, path)
            if row is None:
                left.append((level, path, folder))
            else:
                self.keep(level, row, f"{'right' if row['official'] and row['ours'] else 'WRONG'} {'proved' if row['proved'] else '      '} {row.get('why', row.get('why_ours', ''))[:110]}")
        return left

    def time_all(self, compiled):
        import inductor
        for level, path, folder in self.tasks:
            row = self.rows[level].get(f"{path.parent.name}/{path.name}")
            if not row or "errors" not in row or self.seconds() > self.options.seconds:
                continue
            if inductor.done(self.options.state, path) if compiled else row["ours_us"]:
                continue

            def work():
                add_times(row, path, folder, self.options, compiled)
                return row
            row = self.guarded(work, level, path)
            ratio = f"{row['eager_us'] / row['ours_us']:6.2f}x eager" if row["ours_us"] else "-"
            against = f"{row['compile_us'] / row['ours_us']:6.2f}x compile{'' if 'compile_from' not in row else ' (recorded)'}" if row["ours_us"] and row["compile_us"] else ""
            self.keep(level, row, f"{ratio} {against} {row['ours_us'] or 0:9.0f} us {row.get('why', '')[:80]}")

    def go(self):
        import inductor
        options = self.options
        options.out.mkdir(parents=True, exist_ok=True)
        self.processes = inductor.workers(options.workers, options.state, [path for _, path, _ in self.tasks]) if options.compile else []
        try:
            if options.program:
                from tilewright import _paths
                _paths.show_python_packages()
                self.compilations = Compilations([f for _, _, f in self.tasks if (f / "kernels.py").exists()], options.program)
            left = self.test_all()
            if self.compilations:
                self.compilations.wait_all()
            while self.warming() and self.seconds() < options.compile_seconds:
                time.sleep(0.5)
        finally:
            for p in self.processes:
                p.kill()
                p.wait()
        print(f"{self.seconds():6.1f} s  tests done, {len(left)} again; torch.compile compiled {sum(not inductor.done(options.state, p) for _, p, _ in self.tasks) if options.compile else 0}", flush=True)
        if left:
            self.test_all()
        self.time_all(False)
        if options.compile:  # again, with torch.compile's beside the two others, as far as the time goes
            self.time_all(True)
        for level, rows in self.rows.items():
            print(json.dumps(summary(list(rows.values()), level)), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", type=pathlib.Path)
    parser.add_argument("generated", type=pathlib.Path)
    parser.add_argument("--level", type=int, action="append")
    parser.add_argument("--only", help="tasks with commas between: 3 (of each level), L2-3, or L2 (the whole level)")
    parser.add_argument("--first", help="tasks that are tested and timed before the others: L1-6,L2-23")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=240, help="of the whole run")
    parser.add_argument("--each", type=float, default=0.4, help="seconds of timing for one task")
    parser.add_argument("--trials", type=int, default=5, help="seeds of the official gate")
    parser.add_argument("--compile", action="store_true", help="also time torch.compile")
    parser.add_argument("--workers", type=int, default=8, help="processes that compile for torch.compile")
    parser.add_argument("--compile-seconds", type=float, default=150, help="after so many seconds these end, and what they have not compiled has no time, or an earlier one")
    parser.add_argument("--state", type=pathlib.Path, default=pathlib.Path("/tmp/tilewright_kernelbench"), help="what these have done")
    parser.add_argument("--compile-times", type=pathlib.Path, help="times of torch.compile that were measured before, in JSON")
    parser.add_argument("--program", help="tilewright; with it kernels are compiled side by side, not one by one")
    parser.add_argument("--again", action="store_true")
    Run(parser.parse_args()).go()
    return 0


if __name__ == "__main__":
    sys.exit(main())
