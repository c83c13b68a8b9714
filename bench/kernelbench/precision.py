#!/usr/bin/env python3
"""How torch's library rounds the operands of each convolution of KernelBench's tasks, on this machine's GPU.

    python3 bench/kernelbench/precision.py TASKS --out bench/results/h200/kernelbench/precision.json [--level 2] [--seconds 60]

For every convolution of a task, with the task's own inputs: the largest difference between torch's result and fp64 sums of operands that are exact, rounded
to tf32 with ties away from zero, or with ties to even; relative to the root mean square of the result. The smallest of the three names the rounding.
"""
import argparse
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import inputs_of, load_task  # noqa: E402


def rounded(x, even):
    import torch
    bits = x.float().contiguous().view(torch.int32)
    half = 0x0FFF + ((bits >> 13) & 1) if even else 0x1000
    return ((bits + half) & ~0x1FFF).view(torch.float32).double()


def main():
    import torch
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--level", type=int, action="append")
    parser.add_argument("--only")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    wanted = {int(n) for n in options.only.split(",")} if options.only else None
    begin, rows = time.time(), {}
    kinds = {"f32": lambda v: v.double(), "tf32_away": lambda v: rounded(v, False), "tf32_even": lambda v: rounded(v, True)}
    for level in options.level or [1, 2]:
        for path in sorted((options.tasks / f"level{level}").glob("*.py"), key=lambda p: int(re.match(r"\d+", p.name).group())):
            number = int(re.match(r"\d+", path.name).group())
            if "onv" not in path.name or (wanted and number not in wanted):
                continue
            if time.time() - begin > options.seconds:
                break
            try:
                model, get_inputs = load_task(path)
                found = {}

                def look(name):
                    def hook(module, args, output):
                        x, w = args[0][:1], module.weight
                        dims = x.dim() - 2
                        turned = "Transpose" in type(module).__name__
                        call = getattr(torch.nn.functional, f"conv{'_transpose' if turned else ''}{dims}d")
                        bias = module.bias.double() if module.bias is not None else None
                        attributes = dict(stride=module.stride, padding=module.padding, dilation=module.dilation, groups=module.groups)
                        if turned:
                            attributes["output_padding"] = module.output_padding
                        row = {}
                        for kind, round_to in kinds.items():
                            exact = call(round_to(x), round_to(w), bias, **attributes)
                            row[kind] = float((output[:1].double() - exact).abs().max() / exact.square().mean().sqrt())
                        row["rounding"] = min(kinds, key=row.get)
                        found[name] = row
                    return hook
                for name, module in model.named_modules():
                    if "Conv" in type(module).__name__:
                        module.register_forward_hook(look(name))
                with torch.no_grad():
                    model(*inputs_of(get_inputs, 42))
                rows[f"{path.parent.name}/{path.name}"] = found
                print(f"{time.time() - begin:6.1f} s L{level}-{number:<4}", {k: (v["rounding"], f"{v[v['rounding']]:.1e}", f"{v['f32']:.1e}") for k, v in found.items()}, flush=True)
            except Exception as error:  # one task must not end the run
                print(f"L{level}-{number}: {str(error)[:200]}", flush=True)
            torch.cuda.empty_cache()
    options.out.write_text(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "tasks": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
