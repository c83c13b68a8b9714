"""Kernels as the compiler prints them: right on ragged and tiny shapes, and timed beside the hand-written ones.

    for k in kernels/*.py; do tilewright emit $k --to plan > plans/$(basename $k .py).json; done
    python3 bench/emitted.py check plans out.jsonl       every kernel, many shapes, poisoned and guarded outputs
    python3 bench/emitted.py time plans out.jsonl        interleaved with bench/targets and torch

A hang or a CUDA fault ends the process; a rerun with the same out file goes on behind it. Exit status 0: all was begun.
"""
import glob
import json
import math
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "targets"))

import torch  # noqa: E402

import harness as tw  # noqa: E402
import plan as plans  # noqa: E402

BF16, F32, I32 = torch.bfloat16, torch.float32, torch.int32
GUARD = 1024


class Journal:
    def __init__(self, path):
        self.path = path
        self.begun = set()
        if os.path.exists(path):
            with open(path) as f:
                self.begun = {row["begin"] for row in map(json.loads, f) if "begin" in row}

    def put(self, **row):
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")

    def guarded(self, key, seconds, fn):
        if key in self.begun:
            return
        self.put(begin=key)
        timer = threading.Timer(seconds, lambda: (self.put(key=key, error="hang"), print(key, "HANG", flush=True), os._exit(3)))
        timer.daemon = True
        timer.start()
        try:
            row = fn()
            torch.cuda.synchronize()
            self.put(key=key, **row)
            return row
        except (plans.Unfit, tw.TilewrightError) as e:
            self.put(key=key, error=str(e)[:300])
            print(key, "REFUSED", str(e)[:300], flush=True)
            if "CUDA" in str(e) and "launch" not in str(e):
                os._exit(4)
        except Exception as e:
            self.put(key=key, error=str(e)[:300])
            print(key, "ERROR", str(e)[:300], flush=True)
            os._exit(4)
        finally:
            timer.cancel()


def rand(*shape, dtype=F32, seed=1):
    g = torch.Generator(device="cuda").manual_seed(seed + sum(shape))
    return torch.randn(*shape, device="cuda", generator=g).to(dtype)


class Output:
    """A poisoned output between two guards."""

    def __init__(self, *shape, dtype=F32, zeroed=False):
        count = math.prod(shape)
        self.whole = torch.full((count + 2 * GUARD,), float("nan"), device="cuda", dtype=dtype)
        self.tensor = self.whole[GUARD:GUARD + count].view(shape)
        self.zeroed = zeroed

    def reset(self):
        self.whole.fill_(float("nan"))
        if self.zeroed:
            self.tensor.zero_()

    def intact(self):
        n = self.tensor.numel()
        return bool(torch.isnan(self.whole[:GUARD]).all()) and bool(torch.isnan(self.whole[GUARD + n:]).all())


# ---------------------------------------------------------------- cases: (label, inputs, outputs with references, scalars, tolerance)


def elementwise():
    for n in (1, 3, 1000, 1024, 4097, (1 << 20) + 5):
        a, b, c = rand(n), rand(n, seed=2), Output(n)
        yield "vector_add", f"{n}", dict(A=a, B=b), {"C": (c, a.double() + b.double())}, {}, 1e-6
    for m, n in ((1, 1), (3, 7), (5, 8), (17, 264), (100, 1001), (64, 4096)):
        x, bias, y = rand(m, n, dtype=BF16), rand(n, dtype=BF16, seed=2), Output(m, n, dtype=BF16)
        ref = torch.nn.functional.gelu(x.double() + bias.double())
        yield "bias_gelu", f"{m}x{n}", dict(X=x, bias=bias), {"Y": (y, ref)}, {}, 4e-3


def rows():
    for m, n in ((1, 1), (3, 5), (7, 1000), (4, 1024), (5, 1025), (33, 5000), (2, 4096)):
        x, y = 3 * rand(m, n), Output(m, n)
        yield "softmax", f"{m}x{n}", dict(X=x), {"Y": (y, torch.softmax(x.double(), -1))}, {}, 2e-6
    for m, n in ((1, 8), (3, 16), (7, 1000), (100, 1024), (5, 512)):
        x, g, b = 2 * rand(m, n, dtype=BF16) + 1, rand(n, dtype=BF16, seed=2), rand(n, dtype=BF16, seed=3)
        y = Output(m, n, dtype=BF16)
        ref = torch.nn.functional.layer_norm(x.double(), (n,), g.double(), b.double(), 1e-5)
        yield "layernorm", f"{m}x{n}", dict(X=x, gamma=g, beta=b), {"Y": (y, ref)}, dict(eps=1e-5), 5e-3
        y = Output(m, n, dtype=BF16)
        xd = x.double()
        ref = xd * torch.rsqrt((xd * xd).mean(-1, keepdim=True) + 1e-5) * g.double()
        yield "rmsnorm", f"{m}x{n}", dict(X=x, gamma=g), {"Y": (y, ref)}, dict(eps=1e-5), 5e-3
    for m, n in ((1, 1), (3, 7), (5, 1024), (4, 3001)):
        x, y = rand(m, n), Output(m, n)
        yield "cumsum", f"{m}x{n}", dict(X=x), {"Y": (y, x.double().cumsum(-1))}, {}, 1e-5
    for m, n in ((1, 1), (33, 65), (100, 7), (256, 512)):
        x, y = rand(m, n), Output(n, m)
        yield "transpose", f"{m}x{n}", dict(X=x), {"Y": (y, x.double().t())}, {}, 0.0
    for m, n in ((1, 1), (3, 5), (65, 700), (130, 513)):
        x, s = rand(m, n), Output(m)
        yield "row_sum", f"{m}x{n}", dict(X=x), {"S": (s, x.double().sum(1))}, {}, 1e-5
        for name in ("column_sum", "column_sum_atomic"):
            s = Output(n, zeroed=name.endswith("atomic"))
            yield name, f"{m}x{n}", dict(X=x), {"S": (s, x.double().sum(0))}, {}, 1e-5


GEMM_SHAPES = ((128, 256, 64), (8, 8, 8), (1, 8, 16), (129, 264, 72), (200, 328, 1000), (2000, 2008, 128), (1000, 3000, 776), (4096, 2048, 512))


def gemms(name):
    for m, n, k in GEMM_SHAPES:
        a, b, c = rand(m, k, dtype=BF16), rand(n, k, dtype=BF16, seed=2), Output(m, n, dtype=BF16)
        yield name, f"{m}x{n}x{k}", dict(A=a, B=b), {"C": (c, a.float() @ b.float().t())}, {}, 6e-3


def split():
    for m, n, k in ((1, 1, 8), (65, 70, 200), (200, 130, 1000)):
        a, b, p = rand(m, k, dtype=BF16), rand(n, k, dtype=BF16, seed=2), Output(4, m, n)
        chunk = (k + 127) // 128 * 32
        parts = [a[:, min(s * chunk, k):min((s + 1) * chunk, k)].double() @ b[:, min(s * chunk, k):min((s + 1) * chunk, k)].double().t() for s in range(4)]
        yield "partial_products", f"{m}x{n}x{k}", dict(A=a, B=b), {"P": (p, torch.stack(parts))}, {}, 1e-5
        full, c = rand(4, m, n), Output(m, n, dtype=BF16)
        yield "sum_splits", f"{m}x{n}", dict(P=full), {"C": (c, full.double().sum(0))}, {}, 4e-3


def attentions():
    for b, h, s, t in ((1, 1, 1, 1), (1, 2, 100, 77), (2, 2, 128, 256), (1, 3, 300, 129), (1, 1, 64, 1000)):
        d = 128
        q, k, v = (rand(b, h, n, d, dtype=BF16, seed=i) for i, n in enumerate((s, t, t)))
        scores = (q.double() @ k.double().transpose(-1, -2)) / math.sqrt(d)
        o, lse = Output(b, h, s, d, dtype=BF16), Output(b, h, s)
        refs = {"O": (o, torch.softmax(scores, -1) @ v.double()), "LSE": (lse, torch.logsumexp(scores, -1))}
        yield "attention", f"{b}x{h}x{s}x{t}", dict(Q=q, K=k, V=v), refs, dict(scale=1.4426950408889634 / math.sqrt(d)), 6e-3


def grouped():
    for counts, tokens, n, k in (((5, 0, 70), 40, 136, 64), ((64, 129, 1), 300, 264, 200)):
        total, bm = sum(counts), 64
        g = torch.Generator().manual_seed(5)
        first, end, expert, at = [], [], [], 0
        for e, c in enumerate(counts):
            for f in range(at, at + c, bm):
                first.append(f)
                end.append(at + c)
            expert += [e] * c
            at += c
        as_i32 = lambda x: torch.tensor(x, dtype=I32, device="cuda")  # noqa: E731
        chosen = torch.randint(0, tokens, (total,), generator=g)
        x, w, y = rand(tokens, k, dtype=BF16), rand(len(counts), n, k, dtype=BF16, seed=2), Output(total, n, dtype=BF16)
        ref = torch.stack([x[chosen[p]].float() @ w[expert[p]].float().t() for p in range(total)])
        yield ("grouped_gemm", f"{counts}x{n}x{k}", dict(X=x, W=w, rows=chosen.to(I32).cuda(), expert=as_i32(expert), tile_first=as_i32(first),
                                                         tile_end=as_i32(end)), {"Y": (y, ref)}, {}, 6e-3)


def error(got, ref):
    wide = ref.double()
    return float((got.double() - wide).norm() / wide.norm().clamp_min(1e-30))


def check(folder, journal):
    groups = [("vector_add bias_gelu", elementwise), ("softmax layernorm rmsnorm cumsum transpose reductions", rows),
              ("gemm_sm80", lambda: gemms("gemm")), ("gemm_sm90", lambda: gemms("gemm")), ("gemm_cluster_sm90", lambda: gemms("gemm_cluster")),
              ("split_k", split), ("grouped_gemm_sm80", grouped), ("attention_sm90", attentions)]
    right = wrong = 0
    for files, cases in groups:
        module = plans.load([os.path.join(folder, f + ".json") for f in files.split()])
        for name, label, inputs, outputs, scalars, tolerance in cases():
            def one():
                tensors = dict(inputs, **{n: o.tensor for n, (o, _) in outputs.items()})
                launch = module[name].prepare(scalars=scalars, **tensors)
                worst = 0.0
                for _ in range(2):   # twice: a counter or a barrier left in the wrong phase shows the second time
                    for o, _ in outputs.values():
                        o.reset()
                    launch()
                    torch.cuda.synchronize()
                    for n, (o, ref) in outputs.items():
                        e = error(o.tensor, ref)
                        worst = max(worst, e if e == e else float("inf"))
                        if not o.intact():
                            return dict(ok=False, why=f"{n}: wrote outside", error=worst)
                return dict(ok=worst <= tolerance, error=worst)
            row = journal.guarded(f"{files.split()[0] if 'gemm' in files else ''} {name} {label}".strip(), 8, one)
            if row and not row["ok"]:
                print(name, label, row, flush=True)
            if row:
                right, wrong = right + row["ok"], wrong + (not row["ok"])
    print(f"checked: {right} right, {wrong} wrong", flush=True)


# ---------------------------------------------------------------- timing


def report(journal, case, calls, sets, scale, unit, baseline):
    r = tw.interleave(calls, rotations=sets, rounds=12, warmup_ms=30.0, target_graph_us=1000.0, baseline=baseline)
    rows = {n: round(r[n]["median_us"], 2) for n in calls}
    journal.put(case=case, us=rows, ratios={k: [round(v[x], 4) for x in ("ratio", "lo", "hi")] for k, v in r["ratios"].items()})
    print(case, {n: f"{us} us {scale / us:.1f} {unit}" for n, us in rows.items()}, flush=True)
    return {}


def time_gemm(folder, journal, m, n, k):
    import gemm as target
    variants = {"target c1 same tile": dict(CLUSTER_M=1), "target best": dict(PDL=1)}
    data = target.sets_for(m, n, k)
    calls = {}
    # gemm_sm90_<anything>.json: the same kernel with other constants.
    for path in sorted(glob.glob(os.path.join(folder, "gemm_*.json"))):
        module = plans.load(path)
        launches = [next(iter(module.values())).prepare(A=a, B=b, C=c) for a, b, c in data]
        label = "emitted " + os.path.basename(path)[5:-5]
        for i, (a, b, c) in enumerate(data[:1]):
            tw.poison(c)
            launches[i]()
            torch.cuda.synchronize()
            if error(c, a.float() @ b.float().t()) > 6e-3:
                raise RuntimeError(label + " is wrong")
        calls[label] = lambda i, launches=launches: launches[i]()
    for label, v in variants.items():
        kern = tw.compile(os.path.join(HERE, "targets", "gemm_sm90.cu"), entry="gemm", defines=target.macros(v))
        launches = [target.prepare_gemm(kern, v, *s) for s in data]
        calls[label] = lambda i, launches=launches: launches[i]()
    calls["torch.mm"] = lambda i: torch.mm(data[i][0], data[i][1].t(), out=data[i][2])
    return report(journal, f"gemm {m}x{n}x{k}", calls, len(data), 2e-6 * m * n * k, "TFLOP/s", "target c1 same tile")


def time_rows(folder, journal, op, m, n):
    from memory_ops import apply, prepare
    from memory_variants import best_variant
    dtype, elem = (BF16, 2) if op == "layernorm" else (F32, 4)
    sets = [(rand(m, n, dtype=dtype, seed=i), torch.empty(m, n, device="cuda", dtype=dtype), rand(n, dtype=dtype), rand(n, dtype=dtype, seed=3))
            for i in range(max(2, -(-180_000_000 // (m * n * elem)) + 1))]
    module = plans.load(os.path.join(folder, op + ".json"))
    extra = lambda s: dict(gamma=s[2], beta=s[3]) if op == "layernorm" else {}  # noqa: E731
    launches = [module[op].prepare(scalars=dict(eps=1e-5), X=s[0], Y=s[1], **extra(s)) for s in sets]
    v = best_variant(op, elem, n)
    kern = tw.compile(os.path.join(HERE, "targets", v.file), entry=v.entry, defines=v.defines)
    prepared = prepare(tw, torch, kern, v, op, sets, m, n, 132)
    calls = {"emitted": lambda i: launches[i](), "target": lambda i: prepared[i](), "torch": lambda i: apply(torch, op, sets[i][0], sets[i][2], sets[i][3])}
    return report(journal, f"{op} {m}x{n}", calls, len(sets), 2e-3 * m * n * elem, "GB/s", "target")


def time_others(folder, journal):
    n = 1 << 26
    sets = [(rand(n, seed=i), rand(n, seed=i + 9), torch.empty(n, device="cuda")) for i in range(2)]
    module = plans.load([os.path.join(folder, f + ".json") for f in ("vector_add", "bias_gelu", "transpose")])
    adds = [module["vector_add"].prepare(A=a, B=b, C=c) for a, b, c in sets]
    report(journal, f"vector_add {n}", {"emitted": lambda i: adds[i](), "torch": lambda i: torch.add(*sets[i][:2], out=sets[i][2])}, 2, 12e-3 * n, "GB/s", "torch")
    m = 8192
    turned = [module["transpose"].prepare(X=s[0].view(m, m), Y=s[2].view(m, m)) for s in sets]
    report(journal, f"transpose {m}x{m}", {"emitted": lambda i: turned[i](), "torch": lambda i: sets[i][2].view(m, m).copy_(sets[i][0].view(m, m).t())}, 2, 8e-3 * m * m, "GB/s", "torch")
    acts = [(rand(m, 4096, dtype=BF16, seed=i), rand(4096, dtype=BF16), torch.empty(m, 4096, device="cuda", dtype=BF16)) for i in range(3)]
    gelus = [module["bias_gelu"].prepare(X=x, bias=b, Y=y) for x, b, y in acts]
    report(journal, f"bias_gelu {m}x4096", {"emitted": lambda i: gelus[i](), "torch": lambda i: torch.nn.functional.gelu(acts[i][0] + acts[i][1])}, 3, 4e-3 * m * 4096, "GB/s", "torch")
    return {}


def time_attention(folder, journal, b, h, s):
    d = 128
    q, k, v = (rand(b, h, s, d, dtype=BF16, seed=i) for i in range(3))
    o, lse = torch.empty_like(q), torch.empty(b, h, s, device="cuda")
    launch = plans.load(os.path.join(folder, "attention_sm90.json"))["attention"].prepare(
        scalars=dict(scale=1.4426950408889634 / math.sqrt(d)), Q=q, K=k, V=v, O=o, LSE=lse)
    calls = {"emitted": lambda i: launch(), "torch sdpa": lambda i: torch.nn.functional.scaled_dot_product_attention(q, k, v)}
    return report(journal, f"attention {b}x{h}x{s}x{d}", calls, 1, 4e-6 * b * h * s * s * d, "TFLOP/s", "torch sdpa")


def main():
    verb, folder, out = sys.argv[1:4]
    journal = Journal(out)
    if verb == "check":
        return check(folder, journal)
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048)):
        journal.guarded(f"time gemm {m}", 25, lambda: time_gemm(folder, journal, m, n, k))
    for op, m, n in (("softmax", 65536, 1024), ("layernorm", 65536, 1024), ("softmax", 16384, 4096)):
        journal.guarded(f"time {op} {m}x{n}", 20, lambda: time_rows(folder, journal, op, m, n))
    journal.guarded("time others", 20, lambda: time_others(folder, journal))
    journal.guarded("time attention", 20, lambda: time_attention(folder, journal, 2, 16, 4096))


if __name__ == "__main__":
    main()
