#!/usr/bin/env python3
"""Several generated programs of one task against each other, on this machine's GPU: which choice of the generator is right.

    python3 bench/kernelbench/variants.py TASKS FOLDER --out variants.json [--program tilewright] [--only L1-55,L2-26] [--seconds 180]

FOLDER/L1-55/NAME/{kernels.py, plan.json, report.json} is the variant NAME of the task (what `generate` wrote, with one switch or another). Each is judged by
the official gate with --trials seeds (--exact: and by ours, against fp64), then all are timed in turn with the task's own module; beside that the time of each launch by itself, L2 flushed
before the whole, so that it is seen where a task's time goes.
"""
import argparse
import gc
import json
import pathlib
import re
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run as bench  # noqa: E402


def launches(ours, inputs, rounds=5):
    """Median microseconds of each launch of a plan, in a call whose other launches run as well."""
    import torch
    module, events = ours._module, []
    kernels = module.kernels

    class Timed(dict):
        def __getitem__(self, name):
            def call(*views):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                kernels[name](*views)
                end.record()
                events.append((name, begin, end))
            return call

    class Stand:
        def __getattr__(self, name):
            return Timed() if name == "kernels" else getattr(module, name)
    flush = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    times = {}
    ours._module = Stand()
    try:
        for _ in range(rounds):
            events.clear()
            flush.fill_(0)
            ours(*inputs)
            torch.cuda.synchronize()
            for i, (name, begin, end) in enumerate(events):
                times.setdefault((i, name), []).append(begin.elapsed_time(end) * 1000)
    finally:
        ours._module = module
    return [[name, round(sorted(t)[len(t) // 2], 1)] for (_, name), t in sorted(times.items())]


def task(path, folder, options):
    import torch
    model, get_inputs = bench.load_task(path)
    row = {"task": f"{path.parent.name}/{path.name}", "variants": {}}
    contenders, names = [model], []
    inputs = bench.inputs_of(get_inputs, 42)
    for variant in sorted(p for p in folder.iterdir() if (p / "plan.json").exists()):
        about = row["variants"][variant.name] = {}
        try:
            ours = bench.compiled_for(variant, model)
            with bench.shared_draws(ours.plan):
                about["wrong"] = bench.official(model, ours, get_inputs, options.trials)
                if options.exact and not about["wrong"]:
                    about["errors"], about["wrong"] = bench.stricter(model, ours, get_inputs)
            with torch.no_grad():
                about["launches"] = launches(ours, inputs)
        except Exception as error:  # one variant must not end the run
            about["wrong"] = "".join(traceback.format_exception_only(type(error), error)).strip()[:300]
            continue
        contenders.append(ours)
        names.append(variant.name)
    times = bench.timed(contenders, inputs, options.each)
    row["eager_us"] = times[0]
    for name, t in zip(names, times[1:]):
        row["variants"][name]["us"] = t
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only")
    parser.add_argument("--program")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--each", type=float, default=0.5)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--exact", action="store_true", help="our own gate too: the error against fp64, beside torch's")
    options = parser.parse_args()
    begin, rows = time.time(), []
    found = [f for f in sorted(options.folder.iterdir()) if re.fullmatch(r"L\d-\d+", f.name) and (not options.only or f.name in options.only.split(","))]
    if options.program:
        bench.compile_all([v for f in found for v in sorted(f.iterdir()) if (v / "kernels.py").exists()], options.program)
    import torch
    for f in found:
        if time.time() - begin > options.seconds:
            print(f"{f.name}: no time left")
            continue
        level, number = f.name[1:].split("-")
        path = next((options.tasks / f"level{level}").glob(f"{number}_*.py"))
        try:
            row = task(path, f, options)
        except Exception as error:  # one task must not end the run
            row = {"task": f.name, "why": "".join(traceback.format_exception_only(type(error), error)).strip()[:300], "variants": {}}
        rows.append(row)
        gc.collect()
        torch.cuda.empty_cache()
        print(f"{time.time() - begin:6.1f} s {f.name}: eager {row.get('eager_us', 0):.0f} us {row.get('why', '')}", flush=True)
        for name, about in row["variants"].items():
            ratio = f"{row['eager_us'] / about['us']:.2f}x {about['us']:.0f} us" if about.get("us") else "-"
            parts = " ".join(f"{n.replace('convolution', 'conv')}={t:.0f}" for n, t in about.get("launches", []))
            print(f"    {name:14} {ratio} {'WRONG ' + about['wrong'][:150] if about['wrong'] else 'right'} | {parts[:400]}", flush=True)
        options.out.write_text(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "tasks": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
