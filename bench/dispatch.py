#!/usr/bin/env python3
"""What tilewright.ops chooses for a GEMM against the best of all candidates: every file of the dispatch table, every set of constants in its tuned data.

    python3 bench/dispatch.py OUT.json [--shapes 60] [--seed 5] [--seconds 150]       needs a GPU
        --untuned           only shapes that the tuned data does not have
        --given FILE.json   these shapes, [[M, N, K], ...], instead of drawn ones
        --sets FILE.json    sets of constants that no tuned data has yet: {"gemm_thin_sm90.py": [{"PARTS": 8}, ...]}
        --near RATIO        of the points with a time for the shape in the tuned data, those up to RATIO of the best
    python3 bench/dispatch.py OUT.json [MORE.json ...] --merge                        puts their times into kernels/*.tuned.json; no GPU
    python3 bench/dispatch.py OUT.json --leave-out 6                                  the choice for a sixth of the shapes in the tuned data by the other five, in turn; no GPU

Shapes are drawn from {64, 128, ..., 16384}^3, at most 2^41 multiply-adds. All points of a shape are timed as CUDA graphs in turn; the three best and the chosen one
once more. ratio = best / chosen.
"""
import argparse
import concurrent.futures
import json
import math
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384)


def tuned(file):
    path = os.path.join(ROOT, "kernels", file[:-3] + ".tuned.json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def key_of(constants):
    """A set of constants as text; bf16 is the first variant."""
    return json.dumps({k: v for k, v in constants.items() if k != "T"}, sort_keys=True)


def points(table, more):
    """[(file, kernel, constants)]: the file's own constants, each set that is in its tuned data, and those of `more`."""
    found = []
    for file, kernel in table["matmul_tn"]:
        sets = [{}] + [e["constants"] for e in (tuned(file) or {"entries": []})["entries"] if e["kernel"] == kernel] + more.get(file, [])
        seen = set()
        for constants in sets:
            key = key_of(constants)
            if key not in seen and constants.get("T", "bf16") == "bf16":
                seen.add(key)
                found.append((file, kernel, json.loads(key)))
    return found


def near_points(table, ratio):
    """{(M, N, K): points whose time in the tuned data is at most `ratio` of the best}"""
    times = {}
    for file, kernel in table["matmul_tn"]:
        for e in (tuned(file) or {"entries": []})["entries"]:
            if e["kernel"] == kernel and "M" in e["sizes"] and e["constants"].get("T", "bf16") == "bf16":
                times.setdefault(tuple(e["sizes"][s] for s in "MNK"), {})[file, kernel, key_of(e["constants"])] = e["us"]
    return {shape: {p for p, us in of.items() if us <= ratio * min(of.values())} for shape, of in times.items()}


def is_another(times, file, us):
    """Older runs timed what the tuned data took, and called it {}: where another set of the file has that time, it may have been that one."""
    return file == "gemm_skinny_sm90.py" or any(f == file and c != "{}" and abs(math.log(t / us)) < 0.03 for f, _, c, t in times)


def compile_all(kernels, torch, refusal):
    """All texts at once, by as many threads as there are cores: one after another, inside the first shape, they take a minute of the time."""
    begin = time.time()
    made = [tuple(torch.zeros(rows, columns, device="cuda", dtype=torch.bfloat16) for rows, columns in ((m, k), (n, k), (m, n))) for m, n, k in ((256, 512, 1024), (64, 2048, 4096))]

    def compiled(job):
        torch.cuda.synchronize()   # gives this thread the GPU's context
        try:
            job[0].call_for(job[1])
        except refusal:
            pass   # a shape that the kernel does not take

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compiled, [(kernel, tensors) for tensors in made for kernel in kernels]))
    print(f"compiled in {time.time() - begin:.1f} s", flush=True)


def measure(o):
    import torch

    import harness
    import tilewright
    import tilewright.ops as ops
    from tilewright import _dispatch
    from tilewright._arrays import arrays_of

    draw = random.Random(o.seed)
    every = [(m, n, k) for m in SIZES for n in SIZES for k in SIZES if m * n * k <= 1 << 41]
    if o.untuned:
        known = {tuple(e["sizes"].get(s) for s in "MNK") for file, _ in _dispatch.table()["matmul_tn"] for e in (tuned(file) or {"entries": []})["entries"]}
        every = [shape for shape in every if shape not in known]
    kernels = {}
    more = {}
    if o.sets:
        with open(o.sets, encoding="utf-8") as f:
            more = json.load(f)
    for file, kernel, constants in points(_dispatch.table(), more):
        try:
            # Exactly these constants: {} is the file's own, not what its tuned data would take.
            kernels[file, kernel, json.dumps(constants)] = tilewright._module.Module({"path": os.path.join(ROOT, "kernels", file), "constants": constants, "tuned": False}).kernels[kernel]
        except tilewright.TilewrightError:
            continue
    compile_all(kernels.values(), torch, tilewright.TilewrightError)
    added = {(file, key_of(c)) for file, sets in more.items() for c in sets}
    near = near_points(_dispatch.table(), o.near) if o.near else {}
    if o.given:
        with open(o.given, encoding="utf-8") as f:
            every = [tuple(shape) for shape in json.load(f)]
    rows, begin = [], time.time()
    for m, n, k in every if o.given else draw.sample(every, min(o.shapes, len(every))):
        if time.time() - begin > o.seconds:
            break
        sets = max(2, min(6, -(-(96 << 20) // (2 * (m * k + n * k + m * n)))))
        data = [(torch.randn(m, k, device="cuda").bfloat16(), torch.randn(n, k, device="cuda").bfloat16(), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)) for _ in range(sets)]
        want = torch.mm(data[0][0], data[0][1].t())
        calls, wrong = {}, []
        for point, kernel in kernels.items():
            if (m, n, k) in near and point not in near[m, n, k] and (point[0], point[2]) not in added:
                continue
            data[0][2].fill_(float("nan"))
            try:
                kernel(*data[0])
            except tilewright.TilewrightError:
                continue
            if float((data[0][2].float() - want.float()).norm() / want.float().norm()) < 8e-3:
                calls[point] = lambda i, kernel=kernel: kernel(*data[i])
            else:
                wrong.append(point)
        arrays = arrays_of(data[0][0])
        calls["chosen"] = lambda i: _dispatch.run("matmul_tn", arrays, data[i][:2], data[i][2:])
        calls["chosen"](0)
        plan = next(reversed(_dispatch._plans.values()))
        calls["torch"] = lambda i: torch.mm(data[i][0], data[i][1].t(), out=data[i][2])
        timed = {p: c for p, c in calls.items() if p not in ("chosen", "torch")}
        first = harness.interleave(timed, rotations=sets, rounds=3, warmup_ms=1.0, target_graph_us=60.0, baseline=next(iter(timed)))
        finalists = sorted(timed, key=lambda p: first[p]["median_us"])[:3]
        share = max(1, min(64, round(200.0 / first[finalists[0]]["median_us"] / sets))) * sets  # calls of a graph, the same for all
        last = harness.interleave({p: calls[p] for p in [*finalists, "chosen", "torch"]}, rotations=sets, calls_per_graph=share, rounds=7, warmup_ms=3.0, baseline="chosen")
        best = min(finalists, key=lambda p: last[p]["median_us"])
        us = {p: (last[p] if p in last else first[p])["median_us"] for p in timed}
        rows.append({"M": m, "N": n, "K": k, "chosen": [plan.kernel._module.file.rsplit("/", 1)[-1], plan.kernel.name, plan.choice["constants"]], "chosen_us": last["chosen"]["median_us"], "best": list(best),
                     "best_us": last[best]["median_us"], "ratio": min(1.0, last[best]["median_us"] / last["chosen"]["median_us"]), "torch_us": last["torch"]["median_us"],
                     "wrong": [list(w) for w in wrong], "times": [[*p, round(t, 3)] for p, t in us.items()]})
        print(f"{m:6}x{n:6}x{k:6}  chosen {rows[-1]['chosen_us']:9.2f} us, best {rows[-1]['best_us']:9.2f}, ratio {rows[-1]['ratio']:.3f}, torch {rows[-1]['torch_us']:9.2f}  {plan.kernel.name}", flush=True)
        write(o.out, rows, torch, o.near)
    ratios = sorted(r["ratio"] for r in rows)
    mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
    print(f"{len(rows)} shapes: geometric mean {mean:.3f}, worst {ratios[0]:.3f}; against torch.mm {math.exp(sum(math.log(r['torch_us'] / r['chosen_us']) for r in rows) / len(rows)):.3f}")


def write(out, rows, torch, near):
    ratios = [r["ratio"] for r in rows]
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"schema": "tilewright dispatch bench 1", "shapes": len(rows), "mean": math.exp(sum(math.log(r) for r in ratios) / len(ratios)), "worst": min(ratios), "gpu": torch.cuda.get_device_name(),
                   "own_constants": True, "near": near, "rows": rows}, f, indent=1)


def merge(o):
    """The times of all points become entries, the bad ones too: what is known of a kernel only where it is good makes it look good everywhere. Times of a shape from other runs go: kernels are
    compared by them, and times of one run compare best. Of a run with --near, points that it left out keep their times, by its clock: in proportion to those that both runs have."""
    import ctypes

    from tilewright import _dispatch
    from tilewright._library import check, library

    files, kernels, left_out = {}, set(), set()
    for result in o.results:
        with open(result, encoding="utf-8") as f:
            result = json.load(f)
        for row in result["rows"]:
            left_out |= {(row["M"], row["N"], row["K"])} if result.get("near") else set()
            for file, kernel, constants, us in row["times"]:
                if constants == "{}" and not result.get("own_constants") and is_another(row["times"], file, us):
                    continue
                kernels.add(kernel)
                files.setdefault(file, []).append({"constants": json.loads(constants), "default_us": us, "gpu": result["gpu"], "kernel": kernel, "sizes": {"M": row["M"], "N": row["N"], "K": row["K"]}, "us": us})
    old_times, clock = {}, {}
    kernels |= {kernel for _, kernel in _dispatch.table()["matmul_tn"]} if left_out else set()
    for file, _ in _dispatch.table()["matmul_tn"]:
        for e in (tuned(file) or {"entries": []})["entries"]:
            if e["kernel"] in kernels and "M" in e["sizes"]:
                old_times[file, e["kernel"], key_of(e["constants"]), *(e["sizes"][s] for s in "MNK")] = e["us"]
    for file, entries in files.items():
        for e in entries:
            shape = tuple(e["sizes"][s] for s in "MNK")
            if shape in left_out and (file, e["kernel"], key_of(e["constants"]), *shape) in old_times:
                clock.setdefault(shape, []).append(e["us"] / old_times[file, e["kernel"], key_of(e["constants"]), *shape])
    clock = {shape: sorted(ratios)[len(ratios) // 2] for shape, ratios in clock.items()}
    for file in {file for file, *_ in old_times} if left_out else ():
        files.setdefault(file, [])
    for file, entries in files.items():
        path = os.path.join(ROOT, "kernels", file)
        handle = ctypes.c_void_p()
        check(library().tw_module_load(json.dumps({"path": path, "tuned": False}).encode(), ctypes.byref(handle)))
        digest = json.loads(library().tw_module_describe(handle).decode())["program"]
        known = tuned(file)
        old = known["entries"] if known and known["program"] == digest else []
        new = {(e["kernel"], key_of(e["constants"]), *e["sizes"].values()) for e in entries}
        for e in old:
            shape = tuple(e["sizes"][s] for s in "MNK" if s in e["sizes"])
            if shape in clock and e["kernel"] in kernels and (e["kernel"], key_of(e["constants"]), *shape) not in new:
                entries.append({**e, "sizes": dict(zip("MNK", shape)), **{name: round(e[name] * clock[shape], 3) for name in ("us", "default_us")}})
        measured = {tuple(e["sizes"].values()) for e in entries}
        every = [e for e in old if e["kernel"] not in kernels or tuple(e["sizes"][s] for s in "MNK" if s in e["sizes"]) not in measured] + entries
        lines = ",\n".join("  " + json.dumps(e, sort_keys=True, separators=(",", ":")) for e in every)
        with open(path[:-3] + ".tuned.json", "w", encoding="utf-8") as f:
            f.write(f'{{\n "schema": "tilewright tuned 2",\n "file": {json.dumps(file)},\n "program": "{digest}",\n "entries": [\n{lines}\n ]\n}}\n')
        print(f"kernels/{file[:-3]}.tuned.json: {len(every)} entries, {len(entries)} of them new")


def leave_out(o):
    """Each fold's shapes are taken out of a copy of the tuned data, and the choice by what is left is judged by their times."""
    import ctypes
    import shutil
    import tempfile

    from tilewright import _dispatch
    from tilewright._library import Tensor, check, library

    candidates = _dispatch.table()["matmul_tn"]
    data = {file: tuned(file) for file, _ in candidates}
    key = lambda e: (e["sizes"]["M"], e["sizes"]["N"], e["sizes"]["K"])  # noqa: E731
    rows = {}
    for file, kernel in candidates:
        for e in data[file]["entries"] if data[file] else []:
            if e["kernel"] == kernel and e["constants"].get("T", "bf16") == "bf16" and all(size in SIZES for size in key(e)):
                rows.setdefault(key(e), {})[file, json.dumps({k: v for k, v in e["constants"].items() if k != "T"}, sort_keys=True)] = e["us"]
    shapes = sorted(s for s, times in rows.items() if len({f for f, _ in times}) >= 5)
    random.Random(o.seed).shuffle(shapes)

    def choice(module, kernel, m, n, k):
        made, text = (Tensor * 3)(), ctypes.c_char_p()
        for t, place, dims in zip(made, (1 << 44, 2 << 44, 3 << 44), ((m, k), (n, k), (m, n))):
            t.address, t.dtype, t.rank = place, b"bf16", 2
            t.dims[:2], t.strides[:2] = dims, (dims[1], 1)
        if library().tw_module_choose(module, kernel.encode(), made, 3, (ctypes.c_double * 1)(), 0, ctypes.byref(text)):
            return None
        chosen = json.loads(text.value.decode())
        return chosen["predicted_us"], json.dumps({k: v for k, v in chosen["constants"].items() if k != "T"}, sort_keys=True)

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for fold in range(o.leave_out):
            out, modules = set(shapes[fold::o.leave_out]), {}
            for file, kernel in candidates:
                shutil.copy(os.path.join(ROOT, "kernels", file), folder)
                if data[file]:
                    with open(os.path.join(folder, file[:-3] + ".tuned.json"), "w", encoding="utf-8") as f:
                        json.dump({**data[file], "entries": [e for e in data[file]["entries"] if "M" not in e["sizes"] or key(e) not in out]}, f)
                handle = ctypes.c_void_p()
                check(library().tw_module_load(json.dumps({"path": os.path.join(folder, file)}).encode(), ctypes.byref(handle)))
                modules[file, kernel] = handle
            for shape in out:
                picks = [(file, choice(handle, kernel, *shape)) for (file, kernel), handle in modules.items()]
                fitting = [(file, c) for file, c in picks if c]
                file, (us, constants) = fitting[_dispatch.preferred([c[0] for _, c in fitting])]
                times, best = rows[shape], min(rows[shape], key=rows[shape].get)
                if (file, constants) not in times:
                    print(f"  {shape}: {file} {constants} was chosen, of which there is no time")
                    continue
                found.append((times[best] / times[file, constants], shape, (file, constants), us, times[file, constants], best, times[best]))
    found.sort()
    for row in found[:12]:
        print(f"  {row[0]:.3f} {row[1]}: {' '.join(row[2])}, predicted {row[3]:.2f} us, takes {row[4]:.2f}; best {' '.join(row[5])} {row[6]:.2f}")
    print(f"{len(found)} shapes left out: geometric mean {math.exp(sum(math.log(r[0]) for r in found) / len(found)):.4f}, worst {found[0][0]:.3f}, {sum(r[0] < 0.9 for r in found)} under 0.9")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("results", nargs="+", metavar="OUT.json")
    arguments.add_argument("--shapes", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=150)
    arguments.add_argument("--untuned", action="store_true")
    arguments.add_argument("--sets", metavar="FILE.json")
    arguments.add_argument("--given", metavar="FILE.json")
    arguments.add_argument("--near", type=float, default=0.0, metavar="RATIO")
    arguments.add_argument("--merge", action="store_true")
    arguments.add_argument("--leave-out", type=int, default=0, metavar="FOLDS")
    given = arguments.parse_args()
    given.out = given.results[0]
    leave_out(given) if given.leave_out else merge(given) if given.merge else measure(given)
