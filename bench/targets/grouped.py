#!/usr/bin/env python3
"""Checks, sweeps and times the grouped GEMM target against torch._grouped_mm (weights E x N x K, k contiguous).

    grouped.py check    every variant on ragged, empty, tiny and large groups; outputs poisoned, a guard row on each side
    grouped.py sweep    every variant on the four cases, interleaved with the peer
    grouped.py time     the chosen variant per case; JSON rows for the report
"""
import json
import os
import sys
import time

import torch

from gemm import HERE, OUTDIR, SMS, Journal, tw

DEFAULTS = dict(BW=128, BT=256, BK=64, STAGES=4, CLUSTER=2, TOKEN_BOX=16, TOKEN_CHUNK=64, GATHER=0)
CASES = {  # name: experts, tokens, experts per token, in features, out features
    "E8 T4096 k2 4096->14336": (8, 4096, 2, 4096, 14336),
    "E64 T8192 k6 2048->1408": (64, 8192, 6, 2048, 1408),
    "E256 T8192 k8 7168->2048": (256, 8192, 8, 7168, 2048),
    "E8 T64 k2 4096->14336": (8, 64, 2, 4096, 14336),
}


def full(v):
    return {**DEFAULTS, **v}


def label(v):
    d = full(v)
    s = f"{d['BW']}x{d['BT']} s{d['STAGES']} c{d['CLUSTER']} box{d['TOKEN_BOX']} chunk{d['TOKEN_CHUNK']}"
    if d["GATHER"]:
        s += " gather"
    for k in sorted(d):
        if k not in DEFAULTS:
            s += f" {k}={d[k]}"
    return s


def smem_bytes(d):
    return d["STAGES"] * (d["BW"] + d["BT"]) * 128 + d["BW"] // 64 * d["TOKEN_CHUNK"] * 128 + 16 * d["STAGES"] + 1024


def prepare(kernel, v, x, w, out, ends, index=None):
    d = full(v)
    experts, n, k = w.shape
    map_w = tw.tensor_map(w, dtype="bf16", dims=[k, experts * n], strides=[k * 2], box=[64, d["BW"]], swizzle=128, l2_promotion=256)
    if d["GATHER"]:
        source = [x, index]
    else:
        source = [tw.tensor_map(x, dtype="bf16", dims=[k, x.shape[0]], strides=[k * 2], box=[64, d["TOKEN_BOX"]], swizzle=128,
                                l2_promotion=256)]
    cluster = d["CLUSTER"]
    return kernel.prepare(grid=(SMS // cluster * cluster, 1, 1), block=(128 * (1 + d["BW"] // 64), 1, 1),
                          args=[*source, map_w, out, ends, tw.i32(experts), tw.i32(n), tw.i32(k)], smem=smem_bytes(d),
                          cluster=(cluster, 1, 1) if cluster > 1 else None)


def problem(sizes, k, n, seed, tokens=None):
    """Random operands for groups of these sizes. X has `tokens` rows to gather from (default: one per output row)."""
    g = torch.Generator(device="cuda").manual_seed(seed)
    rows = sum(sizes)
    tokens = tokens or max(1, rows)
    x = torch.randn(tokens, k, device="cuda", generator=g).to(torch.bfloat16)
    w = torch.empty(len(sizes), n, k, device="cuda", dtype=torch.bfloat16)
    for e in range(len(sizes)):
        w[e] = torch.randn(n, k, device="cuda", generator=g).to(torch.bfloat16)
    ends = torch.tensor(sizes, dtype=torch.int64).cumsum(0).to(torch.int32).cuda()
    index = torch.randint(0, tokens, (max(1, rows),), device="cuda", generator=g, dtype=torch.int32)
    return x, w, ends, index


def routed_sizes(experts, tokens, per_token, seed):
    """Group sizes of uniform random routing: each token goes to `per_token` distinct experts."""
    g = torch.Generator().manual_seed(seed)
    picks = torch.rand(tokens, experts, generator=g).topk(per_token, dim=1).indices
    return torch.bincount(picks.flatten(), minlength=experts).tolist()


def reference(x, w, sizes, index=None):
    out, at = [], 0
    for e, size in enumerate(sizes):
        rows = x[index[at:at + size].long()] if index is not None else x[at:at + size]
        out.append(rows.float() @ w[e].float().t())
        at += size
    return torch.cat(out)


CHECKS = [  # sizes, k, n
    ([5, 0, 300, 1, 256, 257, 16, 0], 200, 328),
    ([0, 0, 129], 64, 128),
    ([1], 8, 8),
    ([700, 513, 90, 31], 1032, 1408),
    ([16] * 8, 512, 14336),
    (list(range(0, 260, 7)), 136, 264),
]


def compiled(journal, variants):
    src = os.path.join(HERE, "grouped.cu")
    kernels = tw.compile_many([dict(source_path=src, entry="grouped", defines=full(v)) for v in variants], workers=16)
    out = []
    for v, kern in zip(variants, kernels):
        if kern.error:
            print(label(v), "COMPILE ERROR", kern.error[-300:], flush=True)
        else:
            if kern.spill_bytes:
                print(label(v), "SPILLS", kern.spill_bytes, flush=True)
            out.append((v, kern))
    return out


def checked(journal, variants):
    good = []
    for v, kern in compiled(journal, variants):
        gather = full(v)["GATHER"]

        def one():
            worst = 0.0
            for i, (sizes, k, n) in enumerate(CHECKS):
                rows = sum(sizes)
                x, w, ends, index = problem(sizes, k, n, 11 * i + 3, tokens=97 if gather else None)
                guarded = torch.full((rows + 2, n), float("nan"), device="cuda", dtype=torch.bfloat16)
                out = guarded[1:-1]
                prepare(kern, v, x, w, out, ends, index)()
                torch.cuda.synchronize()
                r = tw.check(out, reference(x, w, sizes, index if gather else None), 6e-3)
                if not r["ok"]:
                    return dict(ok=False, problem=i, rel_fro=float(r["rel_fro"]), nan=int(r["nan"]))
                if not (guarded[0].isnan().all() and guarded[-1].isnan().all()):
                    return dict(ok=False, problem=i, guard="overwritten")
                worst = max(worst, float(r["rel_fro"]))
            return dict(ok=True, rel_fro=worst)

        r = journal.guarded("check grouped " + label(v), 8, one)
        if r is None:
            continue
        if "check" not in r:
            journal.put(check="grouped " + label(v), regs=kern.registers, **r)
        if r["ok"]:
            good.append((v, kern))
        else:
            print("check grouped", label(v), r, flush=True)
    print(f"grouped: {len(good)} of {len(variants)} variants right", flush=True)
    return good


def timed(journal, case, variants, rounds, tag, balanced=False):
    """Interleaves the peer and the variants on one case, after comparing each variant's output with the peer's."""
    experts, tokens, per_token, k, n = CASES[case]
    sizes = [tokens * per_token // experts] * experts if balanced else routed_sizes(experts, tokens, per_token, 5)
    rows = sum(sizes)
    x, w, ends, _ = problem(sizes, k, n, 77)
    # for the gathered form: the token matrix and, per output row, its token (rows of x are copies of the tokens)
    out = {name: torch.full((rows, n), float("nan"), device="cuda", dtype=torch.bfloat16) for name in ["peer"]}
    wt = w.transpose(-2, -1)
    index = torch.arange(rows, device="cuda", dtype=torch.int32)[torch.randperm(rows, device="cuda")]
    xg = torch.empty_like(x)
    xg[index.long()] = x  # xg[index[r]] == x[r]

    def peer(i):
        torch._grouped_mm(x, wt, offs=ends)

    fns = {"peer": peer}
    shared = torch.full((rows, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    for v, kern in variants:
        launch = prepare(kern, v, xg if full(v)["GATHER"] else x, w, shared, ends, index)
        fns[label(v)] = lambda i, launch=launch: launch()
    flop = 2.0 * rows * n * k
    ref = torch._grouped_mm(x, wt, offs=ends).float()
    bad = []
    for name in list(fns)[1:]:
        shared.fill_(float("nan"))
        fns[name](0)
        torch.cuda.synchronize()
        r = tw.check(shared, ref, 6e-3)
        if not r["ok"]:
            bad.append(name)
            print("WRONG on", case, name, r["rel_fro"], r["nan"], flush=True)
            del fns[name]
    del ref
    res = tw.interleave(fns, rotations=1, rounds=rounds, target_graph_us=3000.0, baseline="peer")
    p = res["peer"]["median_us"]
    nbytes = 2.0 * (experts * n * k + rows * k + rows * n)
    print(f"--- grouped {case}  rows {rows} (groups {min(sizes)}..{max(sizes)})  peer {p:.1f} us {flop / p * 1e-6:.0f} TF/s {nbytes / p * 1e-6:.2f} TB/s")
    for us, name in sorted((res[q]["median_us"], q) for q in fns):
        ratio = res["ratios"].get("peer/" + name, dict(ratio=1.0, lo=1.0, hi=1.0))
        journal.put(**{tag: case}, variant=name, us=us, peer_us=p, ratio=ratio["ratio"], interval=[ratio["lo"], ratio["hi"]])
        print(f"   {ratio['ratio']:.3f}  {us:9.1f} us {flop / us * 1e-6:6.0f} TF/s {nbytes / us * 1e-6:5.2f} TB/s  {name}", flush=True)
    torch.cuda.empty_cache()
    return res


VARIANTS = [dict(TOKEN_BOX=box, CLUSTER=1) for box in (16, 32, 64)] + [dict(TOKEN_BOX=32, CLUSTER=2), dict(TOKEN_BOX=64, CLUSTER=2)]
VARIANTS += [dict(CLUSTER=1, GATHER=1), dict(BT=64, STAGES=8, CLUSTER=1), dict(CLUSTER=1, STAGGER=2), dict(CLUSTER=1, TOKEN_CHUNK=32)]


def choose(experts, rows):
    """The variant for a problem, from the sweeps in docs/performance/gemm.md."""
    if rows / experts <= 64:
        return dict(BT=64, STAGES=8, CLUSTER=1)  # weight bandwidth: the deepest ring of W
    return dict(CLUSTER=1, TOKEN_BOX=32)


def time_chosen(journal):
    rows = []
    for case, (experts, tokens, per_token, k, n) in [x for x in CASES.items() for _ in range(2)]:
        balanced = bool(rows) and rows[-1]["case"].startswith(f"grouped bf16 {case} routed")
        v = choose(experts, tokens * per_token)
        g = dict(CLUSTER=1, GATHER=1)
        picked = compiled(journal, [v, g])
        res = timed(journal, case, picked, 21, "time", balanced)
        for x, note in ((v, ""), (g, "gathered rows; the peer reads rows already gathered")):
            ratio = res["ratios"]["peer/" + label(x)]
            rows.append(dict(case=f"grouped bf16 {case} " + ("balanced" if balanced else "routed") + (" gathered" if note else ""), ours_us=res[label(x)]["median_us"], peer="torch._grouped_mm",
                             peer_us=res["peer"]["median_us"], ratio=ratio["ratio"], interval=[ratio["lo"], ratio["hi"]],
                             l2="operands exceed L2", notes=(label(x) + "; " + note).rstrip("; ")))
    with open(os.path.join(OUTDIR, "grouped_rows.json"), "w") as f:
        json.dump(rows, f, indent=1)


def main():
    verb = sys.argv[1] if len(sys.argv) > 1 else "check"
    journal = Journal("grouped.jsonl")
    t0 = time.time()
    if verb == "time":
        time_chosen(journal)
        return
    good = checked(journal, VARIANTS)
    if verb == "sweep":
        for case in sys.argv[2:] or CASES:
            for balanced in (False, True):
                timed(journal, case, good, 5, "sweep", balanced)
    print(f"grouped {verb}: {time.time() - t0:.1f} s", flush=True)


if __name__ == "__main__":
    main()
