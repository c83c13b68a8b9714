"""The memory-bound kernels beside torch and the best streaming copy of the run, one case after another on one GPU.

    for k in softmax layernorm ...; do tilewright emit kernels/$k.py --to plan > plans/$k.json; done
    python3 bench/memory_suite.py plans OUT.jsonl [--cases REGEX] [--compile]     time; a rerun with the same OUT goes on behind a hang
    python3 bench/memory_suite.py --table OUT.jsonl bench/results/h200/memory.json

Per case: the output is poisoned, computed and compared with fp64; then ours, torch eager (and torch.compile) and streaming copies
(for reductions: reads) of the same bytes run interleaved, inputs and outputs rotating so that L2 is cold. `share` is the least
traffic of the case over its time, against the best streaming bandwidth of its own run. plans/NAME@LABEL.json holds the same
kernels with other constants, timed as further contenders.
"""
import argparse
import glob
import json
import os
import re
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

COLD_BYTES = 200_000_000      # all sets of a case together, at least: four times L2
TOLERANCE = {2: 4e-3, 4: 2e-5}   # relative Frobenius error against fp64: the rounding of the output, a few ulp of fp32 sums


class Operator:
    """How a kernel of kernels/FILE.py is called and what torch calls it."""

    def __init__(self, file, tensors, torch_function, reads=1, writes=1, kernel=None, out=None, scalars=None, exact=False, reading=None):
        self.file, self.kernel = file, kernel or file
        self.tensors, self.torch_function = tensors, torch_function   # tensors(make, m, n, t): {name: tensor}, inputs
        self.reads, self.writes = reads, writes                       # in units of m * n elements; functions of (m, n) allowed
        self.out = out or (lambda m, n, t: {"Y": ((m, n), t)})
        self.scalars = scalars or {}
        self.exact = exact
        self.reading = callable(reads) if reading is None else reading   # held against reads alone, not copies

    def bytes(self, m, n, elem):
        def units(x):
            return x(m, n) if callable(x) else x * m * n
        return (units(self.reads) + units(self.writes)) * elem


def operators(torch):
    F = torch.nn.functional
    eps = {"eps": 1e-5}

    def x_only(make, m, n, t):
        return {"X": make(m, n)}

    def flat(make, m, n, t):
        return {"X": make(m * n)}

    def flat_out(m, n, t):
        return {"Y": ((m * n,), t)}

    def stacked(make, m, n, t):
        return {"X": make(1, m, n)}

    def rope(X, cosine, sine):
        a, b, c, s = X[:, :, 0], X[:, :, 1], cosine[:, None], sine[:, None]
        return torch.stack((a * c - b * s, b * c + a * s), 2)

    def weighted(make, m, n, t):
        return {"X": make(m, n), "gamma": make(n), "beta": make(n)}

    once = lambda m, n: m * n  # noqa: E731
    per_row = lambda m, n: m  # noqa: E731
    per_column = lambda m, n: n  # noqa: E731
    rows_out = lambda m, n, t: {"S": ((m,), t)}  # noqa: E731
    columns_out = lambda m, n, t: {"S": ((1, n), t)}  # noqa: E731
    return {
        "softmax": Operator("softmax_sm90", kernel="softmax", tensors=x_only, torch_function=lambda X: torch.softmax(X, -1)),
        "layernorm": Operator("layernorm_sm90", kernel="layernorm", tensors=weighted, torch_function=lambda X, gamma, beta: F.layer_norm(X, (X.shape[-1],), gamma, beta, 1e-5), scalars=eps),
        "rmsnorm": Operator("rmsnorm_sm90", kernel="rmsnorm", tensors=lambda make, m, n, t: {"X": make(m, n), "gamma": make(n)}, torch_function=lambda X, gamma: F.rms_norm(X, (X.shape[-1],), gamma, 1e-5), scalars=eps),
        "rmsnorm_residual": Operator("rmsnorm_sm90", lambda make, m, n, t: {"X": make(m, n), "R": make(m, n), "gamma": make(n)},
                                     lambda X, R, gamma: (X + R, F.rms_norm(X + R, (X.shape[-1],), gamma, 1e-5)), reads=2, writes=2, kernel="rmsnorm_residual",
                                     out=lambda m, n, t: {"S": ((m, n), t), "Y": ((m, n), t)}, scalars=eps),
        "gelu": Operator("activations", flat, lambda X: F.gelu(X), kernel="gelu", out=flat_out),
        "silu": Operator("activations", flat, lambda X: F.silu(X), kernel="silu", out=flat_out),
        "relu": Operator("activations", flat, lambda X: F.relu(X), kernel="relu", out=flat_out),
        "swiglu": Operator("activations", lambda make, m, n, t: {"X": make(m, 2 * n)}, lambda X: F.silu(X[:, :X.shape[1] // 2]) * X[:, X.shape[1] // 2:], kernel="swiglu", reads=2),
        "bias_gelu": Operator("bias_gelu", lambda make, m, n, t: {"X": make(m, n), "bias": make(n)}, lambda X, bias: F.gelu(X + bias)),
        "row_sum": Operator("reductions_sm90", x_only, lambda X: X.sum(1), kernel="row_sum", reads=once, writes=per_row, out=rows_out),
        "row_max": Operator("reductions_sm90", x_only, lambda X: X.amax(1), kernel="row_max", reads=once, writes=per_row, out=rows_out),
        "row_mean": Operator("reductions_sm90", x_only, lambda X: X.mean(1), kernel="row_mean", reads=once, writes=per_row, out=rows_out),
        "row_logsumexp": Operator("cross_entropy", x_only, lambda X: torch.logsumexp(X, 1), kernel="logsumexp", reads=once, writes=per_row, out=rows_out),
        "row_argmax": Operator("argmax", x_only, lambda X: X.argmax(1), kernel="row_argmax", reads=once, writes=per_row,
                               out=lambda m, n, t: {"S": ((m,), torch.int64)}, exact=True),
        "column_sum": Operator("reductions_sm90", stacked, lambda X: X.sum(1), kernel="axis_sum", reads=once, writes=per_column, out=columns_out),
        "column_max": Operator("reductions_sm90", stacked, lambda X: X.amax(1), kernel="axis_max", reads=once, writes=per_column, out=columns_out),
        "cumsum": Operator("cumsum_sm90", x_only, lambda X: torch.cumsum(X, -1), kernel="cumsum"),
        "cumprod": Operator("cumsum_sm90", x_only, lambda X: torch.cumprod(X, -1), kernel="cumprod"),
        "transpose": Operator("transpose_sm90", x_only, lambda X: X.t().contiguous(), kernel="transpose", out=lambda m, n, t: {"Y": ((n, m), t)}, exact=True),
        "cross_entropy": Operator("cross_entropy", lambda make, m, n, t: {"X": make(m, n), "target": make.integers(m, n)},
                                  lambda X, target: F.cross_entropy(X, target.long(), reduction="none"), reads=once, writes=per_row,
                                  out=lambda m, n, t: {"loss": ((m,), torch.float32)}),
        # m tokens of n heads of 2 x 64 elements
        "rope": Operator("rope", lambda make, m, n, t: {"X": make(m, n, 2, 64), "cosine": make(m, 64), "sine": make(m, 64)}, rope, reads=lambda m, n: (n + 1) * m * 128,
                         writes=lambda m, n: m * n * 128, out=lambda m, n, t: {"Y": ((m, n, 2, 64), t)}, reading=False),
    }


BF16, F32 = "bf16", "f32"
# (operator, dtype, rows, row length)
CASES = [
    *[("softmax", t, m, n) for t in (BF16, F32) for m, n in ((524288, 128), (65536, 1024), (16384, 4096), (16384, 5000), (4096, 32768), (4096, 65536), (1024, 131072), (256, 400000))],
    *[("softmax", t, m, n) for t in (BF16, F32) for m, n in ((16384, 4095), (65536, 1023), (2048, 65535))],
    *[("layernorm", t, m, n) for t in (BF16, F32) for m, n in ((524288, 128), (65536, 1024), (16384, 4096), (16384, 5120), (4096, 32768), (4096, 65536), (256, 400000))],
    *[("layernorm", t, m, n) for t in (BF16, F32) for m, n in ((16384, 4095), (65536, 1023))],
    *[("rmsnorm", t, m, n) for t in (BF16, F32) for m, n in ((65536, 1024), (16384, 4096), (8192, 8192), (4096, 65536))],
    *[("rmsnorm_residual", t, m, n) for t in (BF16, F32) for m, n in ((16384, 4096), (8192, 8192))],
    *[(op, t, 16384, 4096) for op in ("gelu", "silu", "relu", "swiglu") for t in (BF16, F32)],
    ("gelu", BF16, 16383, 4095), ("silu", F32, 16383, 4095), ("bias_gelu", BF16, 16384, 4096), ("bias_gelu", BF16, 16384, 4095),
    *[(op, t, m, n) for op in ("row_sum", "row_max", "row_logsumexp", "row_argmax") for t in (BF16, F32) for m, n in ((65536, 1024), (16384, 4096), (1024, 131072), (256, 400000))],
    *[("row_mean", F32, 16384, 4095), ("row_argmax", BF16, 16384, 4095)],
    *[(op, t, m, n) for op in ("column_sum", "column_max") for t in (BF16, F32) for m, n in ((16384, 4096), (400000, 256), (1024, 131072))],
    *[("cumsum", t, m, n) for t in (BF16, F32) for m, n in ((65536, 1024), (16384, 4096), (4096, 65536), (256, 400000))],
    ("cumprod", F32, 16384, 4096), ("cumsum", F32, 16384, 4095),
    *[("transpose", t, m, n) for t in (BF16, F32) for m, n in ((16384, 4096), (8192, 8192), (4095, 8191), (400000, 128))],
    *[("rope", t, 16384, 32) for t in (BF16, F32)],
    *[("cross_entropy", t, m, n) for t in (BF16, F32) for m, n in ((16384, 4096), (4096, 32000), (2048, 128256))],
]


def case_name(op, t, m, n):
    return f"{op} {t} {m}x{n}"


class Maker:
    """Random tensors of one dtype; every set has data of its own."""

    def __init__(self, torch, dtype, seed):
        self.torch, self.dtype = torch, dtype
        self.generator = torch.Generator(device="cuda").manual_seed(seed)

    def __call__(self, *shape):
        return self.torch.randn(*shape, device="cuda", generator=self.generator).to(self.dtype)

    def integers(self, count, below):
        return self.torch.randint(0, below, (count,), device="cuda", generator=self.generator, dtype=self.torch.int32)


def outputs_of(torch, op, m, n, dtype):
    made = {}
    for name, (shape, t) in op.out(m, n, dtype).items():
        made[name] = torch.empty(shape, device="cuda", dtype=t)
    return made


def wrong(torch, tw, op, inputs, outputs, elem):
    """How far the outputs are from fp64, as text; empty: right."""
    wide = {k: (v.double() if v.is_floating_point() else v) for k, v in inputs.items()}
    refs = op.torch_function(**wide)
    refs = refs if isinstance(refs, tuple) else (refs,)
    for (name, got), ref in zip(outputs.items(), refs):
        if op.exact:
            if not torch.equal(got.double(), ref.double()):
                return f"{name} differs in {int((got.double() != ref.double()).sum())} elements"
            continue
        error = float((got.double() - ref.double()).norm() / ref.double().norm().clamp_min(1e-30))
        if not error <= TOLERANCE[min(4, got.element_size())]:
            return f"{name}: error {error:.2e}"
    return ""


def run_case(torch, tw, plans, folder, name, op, t, m, n, streams, with_compile, rounds):
    dtype, elem = {BF16: (torch.bfloat16, 2), F32: (torch.float32, 4)}[t]
    total = op.bytes(m, n, elem)
    count = max(2, min(64, -(-COLD_BYTES // total)))
    sets = []
    for i in range(count):
        make = Maker(torch, dtype, 1 + i)
        sets.append((op.tensors(make, m, n, t), outputs_of(torch, op, m, n, dtype)))
    calls, notes = {}, {}
    for path in [os.path.join(folder, op.file + ".json")] + sorted(glob.glob(os.path.join(folder, op.file + "@*.json"))):
        label = "ours" if "@" not in path else os.path.basename(path)[:-5].split("@")[1]
        module = plans.load(path, lazily=True)
        try:
            chosen = module[op.kernel].fitting(**sets[0][0], **sets[0][1])
            launches = [chosen.prepare(132, op.scalars, {**a, **b}) for a, b in sets]
        except (plans.Unfit, tw.TilewrightError, KeyError) as e:
            notes[label] = "refused: " + str(e)[:200]
            continue
        for y in sets[0][1].values():
            tw.poison(y)
        launches[0]()
        torch.cuda.synchronize()
        problem = wrong(torch, tw, op, *sets[0], elem) if m * n <= 1 << 28 else ""
        kernel = chosen.compiled()
        notes[label] = dict(variant=chosen.plan["variant"], threads=chosen.plan["threads"], cluster=chosen.plan["cluster"][0], registers=kernel.registers)
        if problem:
            notes[label]["wrong"] = problem
            print(name, label, "WRONG", problem, flush=True)
            continue
        calls[label] = lambda i, launches=launches: launches[i]()
    calls["torch"] = lambda i: op.torch_function(**sets[i][0])
    if with_compile:
        compiled = torch.compile(op.torch_function, dynamic=False)
        try:
            compiled(**sets[0][0])
            calls["torch.compile"] = lambda i: compiled(**sets[i][0])
        except Exception as e:  # inductor's own failures are no case of ours
            notes["torch.compile"] = str(e)[:200]
    # Streaming of the same number of bytes: half of it read and half written, or all of it read.
    reading = op.reading
    size = total // (1 if reading else 2) // 65536 * 65536
    for label, kernel, threads, unroll in streams["read" if reading else "copy"]:
        source = [torch.empty(size, device="cuda", dtype=torch.uint8).random_() for _ in range(2 if size * 2 > COLD_BYTES else -(-COLD_BYTES // size))]
        grid = (max(1, size // (threads * unroll * 16)), 1, 1)
        into = [torch.empty(size if not reading else 16 * grid[0], device="cuda", dtype=torch.uint8) for _ in source]   # a read writes a word a block
        prepared = [kernel.prepare(grid=grid, block=(threads, 1, 1), args=[a, b, tw.i64(size)], smem=0) for a, b in zip(source, into)]
        calls[label] = lambda i, prepared=prepared: prepared[i % len(prepared)]()
    r = tw.interleave(calls, rotations=count, rounds=rounds, warmup_ms=8.0, target_graph_us=300.0, baseline="torch")
    us = {k: r[k]["median_us"] for k in calls}
    streamed = {k: (size if reading else 2 * size) / us[k] * 1e-3 for k in us if k.startswith("stream")}
    best = max(streamed.values())
    row = dict(case=name, bytes=total, us={k: round(v, 2) for k, v in us.items()}, notes=notes, stream_gbs=round(best, 1), l2=f"cold ({count} sets)",
               gbs={k: round(total / us[k] * 1e-3, 1) for k in us if k not in streamed},
               share={k: round(total / us[k] * 1e-3 / best, 4) for k in us if k not in streamed},
               ratios={k: [round(v[x], 4) for x in ("ratio", "lo", "hi")] for k, v in r["ratios"].items()})
    print(name, {k: f"{us[k]:.1f} us {row['share'][k] * 100:.0f}%" for k in row["share"]}, f"stream {best:.0f}", notes.get("ours"), flush=True)
    return row


def time_all(args):
    import torch

    import harness as tw
    import plan as plans
    done = set()
    if os.path.exists(args.out):
        with open(args.out) as f:
            done = {row["begin"] for row in map(json.loads, f) if "begin" in row}

    def put(**row):
        with open(args.out, "a") as f:
            f.write(json.dumps(row) + "\n")

    if not done:
        put(meta=dict(torch=torch.__version__, cuda=torch.version.cuda, device=torch.cuda.get_device_name()))
    table = operators(torch)
    forms = {"copy": [("stream copy 512x1", 0, 512, 1, 0)], "read": [("stream read 512x4", 1, 512, 4, 1), ("stream read 256x8", 1, 256, 8, 1)]}
    streams = {kind: [(label, tw.compile(os.path.join(HERE, "targets", "stream.cu"), entry="stream",
                                         defines=dict(MODE=mode, THREADS=threads, UNROLL=unroll, LOAD_FORM=load, STORE_FORM=0)), threads, unroll)
                      for label, mode, threads, unroll, load in list_] for kind, list_ in forms.items()}
    # Compile what the cases will use before anything is timed.
    wanted = {}
    for op, t, m, n in CASES:
        name = case_name(op, t, m, n)
        if name in done or not re.search(args.cases, name):
            continue
        for path in sorted(glob.glob(os.path.join(args.plans, table[op].file + "*.json"))):
            if os.path.basename(path)[:-5].split("@")[0] != table[op].file:
                continue
            dtype = {BF16: torch.bfloat16, F32: torch.float32}[t]

            class Meta:
                dtype_ = dtype

                def __call__(self, *shape):
                    return torch.empty(*shape, device="meta", dtype=self.dtype_)

                def integers(self, count, below):
                    return torch.empty(count, device="meta", dtype=torch.int32)
            try:
                given = table[op].tensors(Meta(), m, n, t)
                given.update({k: torch.empty(s, device="meta", dtype=d) for k, (s, d) in table[op].out(m, n, dtype).items()})
                chosen = plans.load(path, lazily=True)[table[op].kernel].fitting(**given)
                wanted[chosen.plan["source"]] = dict(source=chosen.plan["source"], name=chosen.plan["name"] + ".cu", entry=chosen.plan["entry"], arch="sm_90a")
            except (plans.Unfit, KeyError) as e:
                print(name, os.path.basename(path), "has no variant:", str(e)[:300], flush=True)
    for request, kernel in zip(wanted.values(), tw.compile_many(list(wanted.values()), workers=16)):
        if kernel.error:
            print(request["name"], "does not compile:", str(kernel.error)[:400], flush=True)
        elif kernel.spill_bytes:
            print(request["name"], "spills", kernel.spill_bytes, "bytes", flush=True)
    for op, t, m, n in CASES:
        name = case_name(op, t, m, n)
        if name in done or not re.search(args.cases, name):
            continue
        put(begin=name)
        timer = threading.Timer(25, lambda: (put(case=name, error="hang"), print(name, "HANG", flush=True), os._exit(3)))
        timer.daemon = True
        timer.start()
        try:
            put(**run_case(torch, tw, plans, args.plans, name, table[op], t, m, n, streams, args.compile, args.rounds))
            torch.cuda.synchronize()
        except Exception as e:
            put(case=name, error=str(e)[:400])
            print(name, "ERROR", str(e)[:400], flush=True)
            os._exit(4)
        finally:
            timer.cancel()
        torch.cuda.empty_cache()


def write_table(source, target):
    """The run of record: per case our time, the best torch peer's, their ratio with its interval, the share of streaming bandwidth."""
    with open(source) as f:
        rows = [json.loads(line) for line in f]
    cases, meta, last = [], {}, {}
    for row in rows:   # of several runs of a case the last one that timed ours, else the last
        meta.update(row.get("meta", {}))
        if "case" in row and ("ours" in row.get("us", {}) or "ours" not in last.get(row["case"], {}).get("us", {})):
            last[row["case"]] = row
    for row in last.values():
        if "us" not in row or "ours" not in row["us"]:
            if "case" in row:
                cases.append(dict(case=row["case"], ours_us=None, peer="torch eager", peer_us=row.get("us", {}).get("torch"), ratio=None, interval=None, notes=row.get("error") or row.get("notes")))
            continue
        ratio = row["ratios"].get("torch/ours")
        cases.append(dict(case=row["case"], ours_us=row["us"]["ours"], peer="torch eager", peer_us=row["us"]["torch"], ratio=ratio[0], interval=ratio[1:], share=row["share"]["ours"],
                          gbs=row["gbs"]["ours"], stream_gbs=row["stream_gbs"], compile_us=row["us"].get("torch.compile"), l2=row["l2"], notes=row["notes"].get("ours")))
    with open(target, "w") as f:
        json.dump(dict(cases=cases, versions=meta, command="python3 bench/memory_suite.py plans OUT.jsonl --compile"), f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans")
    parser.add_argument("out")
    parser.add_argument("--cases", default="", help="only cases whose name matches")
    parser.add_argument("--compile", action="store_true", help="also time torch.compile")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--table", action="store_true", help="PLANS is a result file and OUT the table to write")
    args = parser.parse_args()
    if args.table:
        return write_table(args.plans, args.out)
    return time_all(args)


if __name__ == "__main__":
    main()
