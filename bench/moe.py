#!/usr/bin/env python3
"""The layer of experts (kernels/moe_layer_sm90.py) beside the best composition of torch: topk, sort, index_select, torch._grouped_mm, compiled SwiGLU and compiled weighted sum.

    python3 bench/moe.py OUT.json [--plans FOLDER] [--rounds 10] [--seconds 60]
    python3 bench/moe.py --emit FOLDER                 plans of all cases, on a machine with or without a GPU

The launches of the program run in its order as CUDA graphs, interleaved with the peer's. First the integers are compared with a stable sort, the table of tiles is walked, and a sample of tokens is
computed in fp64. Without --plans they are made by `tilewright emit`, the newest of build*/bin and dist/*/bin.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import harness as tw
import plan

CASES = [  # name, experts, tokens, K, N, constants
    ("E8 T64 k2 4096->14336", 8, 64, 4096, 14336, dict(TOP=2, HIGH=64, STEP=16, STAGES=7, TOGETHER=8, LAG=4)),
    ("E64 T8192 k6 2048->1408", 64, 8192, 2048, 1408, dict(TOP=6, HIGH=256, STEP=32, STAGES=4, TOGETHER=8, LAG=2)),
    ("E8 T4096 k2 4096->14336", 8, 4096, 4096, 14336, dict(TOP=2, HIGH=256, STEP=32, STAGES=4, TOGETHER=5, LAG=2)),
    ("E256 T8192 k8 7168->2048", 256, 8192, 7168, 2048, dict(TOP=8, HIGH=256, STEP=32, STAGES=4, TOGETHER=7, LAG=2)),
]
LOADS = ("balanced", "routed", "zipf")
PEER = "torch: topk, sort, index_select, _grouped_mm, compiled SwiGLU, compiled weighted sum"


def plan_path(folder, name):
    return os.path.join(folder, name.split(" k")[0].replace(" ", "_") + ".json")


def emit(folder):
    programs = [p for pattern in ("build*/bin/tilewright", "dist/*/bin/tilewright") for p in glob.glob(os.path.join(tw.REPOSITORY, pattern))]
    for name, _, _, _, _, constants in CASES:
        subprocess.run([max(programs, key=os.path.getmtime), "emit", os.path.join(tw.REPOSITORY, "kernels/moe_layer_sm90.py"), "--to", "plan", "--set",
                        ",".join(f"{k}={v}" for k, v in constants.items()), "-o", plan_path(folder, name)], check=True, stderr=subprocess.DEVNULL)


def scores_for(torch, tokens, experts, top, load, seed):
    """Scores that choose: every expert equally often; at random; by shares 1 / rank, experts in random order."""
    g = torch.Generator(device="cuda").manual_seed(seed)
    u = torch.rand(tokens, experts, generator=g, device="cuda")
    if load == "balanced":
        chosen = torch.arange(tokens * top, device="cuda").view(tokens, top) % experts
        s = 0.5 * u
        s.scatter_add_(1, chosen, 1 + 0.1 * torch.rand(tokens, top, generator=g, device="cuda"))
        return s.bfloat16()
    s = -torch.log(-torch.log(u.clamp(1e-9, 1 - 1e-7)))
    if load == "zipf":
        s = s - torch.log(torch.randperm(experts, generator=g, device="cuda").float() + 1)
    return s.bfloat16()


class Layer:
    """The program's buffers and launches."""

    def __init__(self, torch, kernels, c, x, scores, w, v):
        tokens, experts, top, width = x.shape[0], w.shape[0], c["TOP"], w.shape[2]
        rows, together = tokens * top, c["TOGETHER"]
        tiles = (rows // c["HIGH"] + experts + together - 1) // together * together

        def new(*shape, dtype=torch.int32):
            return torch.full(shape, -7 if dtype == torch.int32 else float("nan"), device="cuda", dtype=dtype)

        self.expert, self.weight = new(tokens, top), new(tokens, top, dtype=torch.float32)
        flat = self.expert.view(rows)
        counts, before, total = new((rows + 255) // 256, experts), new((rows + 255) // 256, experts), new(experts)
        offsets, first_tile, units = new(experts + 1), new(experts + 1), new(experts)
        self.place, self.rows, self.group = new(rows), new(rows), new(rows)
        owner, self.first, self.end = new(tiles), new(tiles), new(tiles)
        hidden, y = new(rows, width, dtype=torch.bfloat16), new(rows, x.shape[1], dtype=torch.bfloat16)
        self.out = new(tokens, x.shape[1], dtype=torch.bfloat16)
        table = dict(group=self.group, tile_first=self.first, tile_end=self.end)
        self.parts = {
            "gate": [kernels["moe_gate"].prepare(scores=scores, expert=self.expert, weight=self.weight)],
            "order": [kernels["expert_counts"].prepare(expert=flat, counts=counts), kernels["counts_before"].prepare(counts=counts, before=before, total=total),
                      kernels["expert_offsets"].prepare(total=total, offsets=offsets, first_tile=first_tile, units=units),
                      kernels["row_places"].prepare(expert=flat, offsets=offsets, before=before, place=self.place),
                      kernels["rows_in_order"].prepare(place=self.place, expert=flat, rows=self.rows, group=self.group),
                      kernels["tile_owners"].prepare(first_tile=first_tile, owner=owner),
                      kernels["tile_rows"].prepare(offsets=offsets, first_tile=first_tile, units=units, owner=owner, tile_first=self.first, tile_end=self.end)],
            "hidden": [kernels["expert_hidden"].prepare(X=x, W=w, rows=self.rows, H=hidden, **table)],
            "outputs": [kernels["expert_outputs"].prepare(X=hidden, W=v, Y=y, **table)],
            "sum": [kernels["weighted_sum"].prepare(Y=y, place=self.place, weight=self.weight, O=self.out)],
        }

    def run(self, *names):
        launches = [k for part in names or self.parts for k in self.parts[part]]

        def call(_=0):
            for launch in launches:
                launch()

        return call


def compiled(torch):
    """SwiGLU and the weighted sum, compiled for each shape."""
    swiglu = torch.compile(lambda h: torch.nn.functional.silu(h[:, : h.shape[1] // 2]) * h[:, h.shape[1] // 2 :], dynamic=False)
    add = torch.compile(lambda y, at, weight: (y[at].view(weight.shape[0], weight.shape[1], y.shape[1]).float() * weight[:, :, None]).sum(1).to(torch.bfloat16), dynamic=False)
    return swiglu, add


def make_peer(torch, swiglu, add, x, scores, w, v, top):
    """(all of it, {part: call}). A part alone works on what an earlier, whole run left: graphs are replayed in any order."""
    wt, vt = w.view(w.shape[0], -1, w.shape[3]).transpose(1, 2), v.transpose(1, 2)
    bounds = torch.arange(1, w.shape[0] + 1, device="cuda", dtype=torch.int16)

    def route(s, o):
        best, expert = torch.topk(scores, top, dim=1)
        o["weight"] = torch.softmax(best.float(), 1)
        values, o["order"] = torch.sort(expert.view(-1).to(torch.int16), stable=True)
        o["ends"] = torch.searchsorted(values, bounds, out_int32=True)

    def gather(s, o):
        o["x"] = x.index_select(0, s["order"] // top)

    def first(s, o):
        o["g"] = torch._grouped_mm(s["x"], wt, offs=s["ends"])

    def activation(s, o):
        o["h"] = swiglu(s["g"])

    def second(s, o):
        o["y"] = torch._grouped_mm(s["h"], vt, offs=s["ends"])

    def total(s, o):
        at = torch.empty_like(s["order"])
        at.scatter_(0, s["order"], torch.arange(at.numel(), device="cuda"))
        o["out"] = add(s["y"], at, s["weight"])

    steps = (route, gather, first, activation, second, total)

    def whole(s):
        for step in steps:
            step(s, s)
        return s

    left = whole({})
    torch.cuda.synchronize()
    return (lambda _=0: whole({})["out"]), {"peer " + step.__name__: (lambda _=0, step=step: step(left, {})) for step in steps}


def wrong(torch, layer, c, x, scores, w, v):
    """What is not as it should be, and the largest relative error of a sample of tokens."""
    top, found = c["TOP"], []
    best, _ = torch.topk(scores.float(), top, dim=1)
    if not torch.equal(torch.gather(scores.float(), 1, layer.expert.long()), best):
        found.append("experts")
    ordered = layer.expert.sort(1).values
    if top > 1 and bool((ordered[:, 1:] == ordered[:, :-1]).any()):
        found.append("an expert twice")
    values, order = torch.sort(layer.expert.view(-1).long(), stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel(), device="cuda")
    for name, got, want in (("places", layer.place, place), ("rows", layer.rows, order // top), ("groups", layer.group, values)):
        if not torch.equal(got.long(), want):
            found.append(name)
    at = 0
    for a, b in zip(layer.first.tolist(), layer.end.tolist()):
        if b > a and (a != at or b - a > c["HIGH"] or values[a] != values[b - 1]):
            found.append(f"tile {a}:{b}")
            break
        at = max(at, b)
    if at != order.numel():
        found.append(f"tiles end at {at}")
    error = 0.0
    for t in torch.randperm(x.shape[0], device="cuda")[:8].tolist():
        weight = torch.softmax(scores[t].double()[layer.expert[t].long()], 0)
        want = torch.zeros(x.shape[1], device="cuda", dtype=torch.float64)
        for k, e in enumerate(layer.expert[t].tolist()):
            h = torch.nn.functional.silu(w[e, 0].double() @ x[t].double()) * (w[e, 1].double() @ x[t].double())
            want += weight[k] * (v[e].double() @ h)
        error = max(error, ((layer.out[t].double() - want).norm() / want.norm()).item())
    return found, error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?")
    parser.add_argument("--plans")
    parser.add_argument("--emit")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm", action="store_true", help="compile the plans and stop")
    options = parser.parse_args()
    if options.emit:
        return emit(options.emit)
    folder = options.plans
    if not folder:
        folder = tempfile.mkdtemp()
        emit(folder)
    if options.warm:
        for case in CASES:
            plan.load(plan_path(folder, case[0]), workers=2)
        return None
    import torch

    begin, rows, (swiglu, add) = time.time(), [], compiled(torch)
    for name, experts, tokens, k, n, c in CASES:
        kernels = plan.load(plan_path(folder, name))
        torch.cuda.empty_cache()
        g = torch.Generator(device="cuda").manual_seed(1)
        x = torch.randn(tokens, k, generator=g, device="cuda").bfloat16()
        w, v = (torch.empty(shape, device="cuda", dtype=torch.bfloat16).normal_(0, 0.02, generator=g) for shape in ((experts, 2, n, k), (experts, k, n)))
        for load in LOADS:
            if time.time() - begin > options.seconds:
                print(name, load, "left out: no time left")
                continue
            scores = scores_for(torch, tokens, experts, c["TOP"], load, 3)
            layer = Layer(torch, kernels, c, x, scores, w, v)
            layer.run()()
            found, error = wrong(torch, layer, c, x, scores, w, v)
            peer, parts = make_peer(torch, swiglu, add, x, scores, w, v, c["TOP"])
            difference = ((layer.out.float() - peer().float()).norm() / peer().float().norm()).item()
            timed = {"ours": layer.run(), "peer": peer, **{part: layer.run(part) for part in layer.parts}}
            if load == "routed":
                timed.update(parts)
            r = tw.interleave(timed, rotations=1, rounds=options.rounds, warmup_ms=40, baseline="peer")
            ratio = r["ratios"]["peer/ours"]
            rows.append({"case": f"moe_layer bf16 {name} {load}", "file": "kernels/moe_layer_sm90.py", "constants": c, "status": "right" if not found and error < 2e-2 else "wrong", "wrong": found,
                         "error": error, "difference_from_peer": difference, "ours_us": r["ours"]["median_us"], "peer": PEER, "peer_us": r["peer"]["median_us"], "ratio": ratio["ratio"],
                         "interval": [ratio["lo"], ratio["hi"]], "parts_us": {part: round(r[part]["median_us"], 2) for part in timed if part not in ("ours", "peer")}})
            print(json.dumps(rows[-1]), flush=True)
            with open(options.out, "w") as f:
                json.dump({"suite": "moe", "command": "python3 bench/moe.py " + os.path.basename(options.out), "versions": {"torch": torch.__version__, "device": torch.cuda.get_device_name()}, "cases": rows}, f, indent=1)
                f.write("\n")
            del layer, peer, parts, timed, r
        del x, w, v, kernels
    return None


if __name__ == "__main__":
    sys.exit(main())
