"""The table of single measurements in README.md: one row a record of bench/results/h200 that is not a suite. Every figure is read from its file; scripts/readme_table.py writes it between its marks."""
import math


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def shape(row):
    return f"{row['M']}x{row['N']}x{row['K']}"


def between(values, form):
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def split_errors(data):
    return "fp32 products by f16 splits: the error", between([r["ours"]["rms"] / r["sgemm"]["rms"] for r in data["rows"]], ".2f") + " of SGEMM's"


def cute(data):
    timed = sorted((r for r in data["cases"] if r.get("ratio")), key=lambda r: r["ratio"])
    right = sum(r["status"] == "right" for r in timed)
    missing = [r["kernel"] for r in data["cases"] if not r.get("ratio")]
    attention = [r for r in timed if r["kernel"] in ("attention", "attention_causal")]
    return (f"CuTe text against our CUDA text of the same kernels ({len(timed)} of the {len(data['cases'])} recorded kernels of products, rows, gathers, activations, reductions and attention have CuTe text"
            + (f"; not {', '.join(f'`{name}`' for name in missing)}" if missing else "") + ")",
            f"{'all ' if right == len(timed) else ''}{right} right; {sum(r['ratio'] >= 0.97 for r in timed)} within 3%, worst "
            + ", ".join(f"{r['ratio']:.2f} (`{r['kernel']}`)" for r in timed[:2]) + "; " + ", ".join(f"`{r['kernel']}` {r['ratio']:.2f}" for r in attention))


def ops(data):
    return f"`tilewright.ops`, {data['cases']} random calls against fp64", f"{data['right']} right, {len(data['left_to_torch'])} reasons to leave a call to torch"


def dispatch(data):
    worst = min(data["rows"], key=lambda r: r["ratio"])
    return (f"GEMM dispatch against the best of all candidates, {data['shapes']} shapes of the grid that the tuned data has",
            f"{data['mean']:.3f} on the geometric mean, worst {data['worst']:.3f} ({shape(worst)})" + (f"; {data['note']}" if data.get("note") else ""))


def dispatch_unseen(data):
    return (f"the same for {data['shapes']} shapes that no tuned data had",
            f"{data['mean']:.3f}, worst {data['worst']:.2f}, {sum(r['ratio'] < 0.9 for r in data['rows'])} under 0.9")


def gemm_grid(data):
    rows = [r for r in data["cases"] if r.get("ratio")]
    worst = min(rows, key=lambda r: r["ratio"])
    large = [r["ratio"] for r in rows if math.prod(r["sizes"][n] for n in "MNK") >= 8192**3]
    return (f"GEMM over the grid {{64 ... 16384}}^3, {len(rows)} shapes of a fixed seed",
            f"{geometric_mean([r['ratio'] for r in rows]):.3f} of autotuned cuBLASLt, worst {worst['ratio']:.2f} ({worst['case']}), {sum(r['ratio'] < 0.93 for r in rows)} under 0.93; 8192^3 and larger {between(large, '.2f')}"
            + (f"; {data['note']}" if data.get("note") else ""))


def launch_latency(data):
    us = data["microseconds"]
    from_c = [v for k, v in us.items() if k.startswith("C interface")]
    alone = [v for k, v in us.items() if "driver" in k]
    return ("a launch: a kernel from Python; an operation of `tilewright.ops` with its output; from C",
            f"{us['kernel, three vectors']:.1f} us; {between([v for k, v in us.items() if k.startswith('ops.')], '.1f')} us; {between(from_c, '.1f')} us (in the same run: "
            + (f"the driver alone {between(alone, '.1f')}, " if alone else "") + f"torch.add {us['torch.add(out=)']:.1f}, torch.mm {us['torch.mm']:.1f})")


def kernelbench(data):
    s, tasks = data["summary"], data["tasks"]
    failed = [r["task"].split("/")[1].split("_")[0] for r in tasks if not (r["official"] and r["ours"] and r["proved"])]
    timed = sorted((r for r in tasks if r.get("ours_us") and r.get("eager_us") and r["official"] and r["ours"]), key=lambda r: r["eager_us"] / r["ours_us"])
    slowest = ", ".join(f"L{s['level']}-{r['task'].split('/')[1].split('_')[0]} {r['eager_us'] / r['ours_us']:.2f}" for r in timed[:2])
    compiled = [r for r in timed if r.get("compile_us")]
    here = sum(not r.get("compile_from") for r in compiled)
    lost = sum(r["compile_us"] < r["ours_us"] for r in compiled)
    return (f"KernelBench level {s['level']}, {s['tested']} tasks",
            f"{s['official']} pass the official gate ({between([r['trials'] for r in tasks if r.get('trials')], 'd')} seeds), {s['right_by_both']} also our fp64 gate, {s['right_and_proved']} of these proved"
            + (f" (not {', '.join(failed)})" if failed else "") + f"; {s['geomean_over_eager_of_right']:.2f} times eager, {s['not_slower_than_eager']} not slower (slowest {slowest}); {s['geomean_over_compile']:.2f} times torch.compile, "
            f"slower than it in {lost} (its time taken in the same run for {here} of {len(compiled)} tasks, recorded earlier for the others)")


def evaluation(data):
    return (f"{data['of']} emitted `ModelNew` files under KernelBench's own evaluator", f"{data['correct']} correct" + (f". {data['note']}" if data.get("note") else ""))


def cute_workloads(data):
    def part(name):
        s = data["summary"][name]
        return f"{name} {s['geomean']:.2f} times eager, worst {s['worst']:.2f} ({s['right']} of {s['cases']} right)"
    return "products and activations of KernelBench as CuTe kernels from the loop", "; ".join(part(name) for name in data["summary"])


def ring_launches(data):
    return (f"rings read by ordinary loads, {len(data['rows'])} random kernels launched {data['launches']:,} times",
            ("every output equal to the emulator's, bit by bit" if not data["different"] else f"**{data['different']:,} launches differ from the emulator**") + " ([why this was measured](docs/trusted-base.md), 18)")


def attention_range(data):
    slowest = {who: max(kind[who] for case in data["cases"] for kind in case["hostile"].values()) for who in ("STAY=0", "cuDNN")}
    return ("attention with hostile scores (one far key, rising, falling, sunk, wide) against random ones",
            f"at most {slowest['STAY=0']:.2f} times as long (cuDNN: {slowest['cuDNN']:.2f}), {data['wrong'] or 'none'} wrong")


def moe(data):
    ratios = sorted((c["ratio"], c["case"].removeprefix("moe_layer ")) for c in data["cases"])
    return (f"a layer of experts as one program against the best composition of torch, {len(ratios)} cases",
            f"{geometric_mean([r for r, _ in ratios]):.2f} on the geometric mean, worst {ratios[0][0]:.2f} ({ratios[0][1]}), best {ratios[-1][0]:.2f} ({ratios[-1][1]})")


RECORDS = (("precision_errors.json", split_errors), ("attention_range.json", attention_range), ("cute.json", cute), ("ops.json", ops), ("dispatch.json", dispatch), ("dispatch_unseen.json", dispatch_unseen),
           ("dispatch_unseen_62.json", dispatch_unseen), ("gemm_grid.json", gemm_grid), ("moe.json", moe), ("launch_latency.json", launch_latency), ("kernelbench/level1.json", kernelbench), ("kernelbench/level2.json", kernelbench),
           ("kernelbench/evaluation.json", evaluation), ("cute_workloads.json", cute_workloads), ("ring_launches.json", ring_launches))


def rows(read):
    """(what, figure, file) of every record that exists; `read` gives a file's JSON or None."""
    found = [(name, row, read(f"bench/results/h200/{name}")) for name, row in RECORDS]
    return [[*row(data), name] for name, row, data in found if data]
