#!/usr/bin/env python3
"""A small language model's forward pass, random weights: torch's modules, the same with tilewright.ops in their place, and both under torch.compile.

    python3 bench/small_lm.py OUT.json [--device cuda|cpu] [--length 2048]

The logits of both must agree within bf16; under torch.compile(fullgraph=True) the model with the operations must be one graph; it must be possible to capture
it into a CUDA graph from the second call on.
"""
import argparse
import json
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import tilewright.ops as ops  # noqa: E402


class Torch:
    linear = staticmethod(F.linear)
    rmsnorm = staticmethod(lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6))
    gated = staticmethod(lambda x, gate, up: F.silu(F.linear(x, gate)) * F.linear(x, up))
    attention = staticmethod(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))

    @staticmethod
    def residual(x, w, r):
        return F.linear(x, w) + r

    @staticmethod
    def rope(x, c, s):
        a, b = x.chunk(2, -1)
        c, s = c[:, None, :], s[:, None, :]
        return torch.cat((a * c - b * s, b * c + a * s), -1)


class Ours:
    linear = staticmethod(lambda x, w: ops.linear(x, w))
    rmsnorm = staticmethod(lambda x, w: ops.rmsnorm(x, w, 1e-6))
    gated = staticmethod(lambda x, gate, up: ops.matmul_gated(x, gate, up))
    attention = staticmethod(lambda q, k, v: ops.attention(q, k, v, causal=True))
    rope = staticmethod(lambda x, c, s: ops.rope(x, c, s))

    @staticmethod
    def residual(x, w, r):
        return ops.linear(x, w, None, None, r)


class Model(torch.nn.Module):
    """Two layers as in common decoders: norm, grouped attention with rotary positions, norm, gated feed-forward."""

    def __init__(self, kind, width, heads, groups, hidden, vocabulary, length, layers=2):
        super().__init__()
        self.kind, self.heads, self.groups, self.head = kind, heads, groups, width // heads
        p = lambda *s: torch.nn.Parameter((torch.randn(*s) * s[-1] ** -0.5).bfloat16(), requires_grad=False)  # noqa: E731
        self.embedding, self.final, self.out = p(vocabulary, width), torch.nn.Parameter(torch.ones(width).bfloat16(), requires_grad=False), p(vocabulary, width)
        self.layers = torch.nn.ModuleList()
        for _ in range(layers):
            layer = torch.nn.Module()
            layer.norm1, layer.norm2 = (torch.nn.Parameter(torch.ones(width).bfloat16(), requires_grad=False) for _ in range(2))
            layer.q, layer.k, layer.v, layer.o = p(width, width), p(width // heads * groups, width), p(width // heads * groups, width), p(width, width)
            layer.gate, layer.up, layer.down = p(hidden, width), p(hidden, width), p(width, hidden)
            self.layers.append(layer)
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(self.head // 2) / (self.head // 2))[None]
        self.register_buffer("cosine", angle.cos().bfloat16())
        self.register_buffer("sine", angle.sin().bfloat16())

    def forward(self, tokens):
        f, (batch, length) = self.kind, tokens.shape
        x = F.embedding(tokens, self.embedding)
        for layer in self.layers:
            y = f.rmsnorm(x, layer.norm1)
            q = f.rope(f.linear(y, layer.q).view(batch, length, self.heads, self.head), self.cosine, self.sine).transpose(1, 2)
            k = f.rope(f.linear(y, layer.k).view(batch, length, self.groups, self.head), self.cosine, self.sine).transpose(1, 2)
            v = f.linear(y, layer.v).view(batch, length, self.groups, self.head).transpose(1, 2)
            a = f.attention(q, k, v).transpose(1, 2).reshape(batch, length, -1)
            x = f.residual(a, layer.o, x)
            y = f.rmsnorm(x, layer.norm2)
            x = f.residual(f.gated(y, layer.gate, layer.up), layer.down, x)
        return f.linear(f.rmsnorm(x, self.final), self.out)


def timed(call, device, rounds):
    """Median milliseconds of one call, the device idle before each."""
    samples = []
    for _ in range(rounds):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        samples.append(1000 * (time.perf_counter() - begin))
    return sorted(samples)[len(samples) // 2]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--length", type=int, default=2048)
    o = arguments.parse_args()
    small = o.device == "cpu"
    shape = dict(width=128, heads=2, groups=1, hidden=192, vocabulary=128, length=24) if small else dict(width=2048, heads=16, groups=4, hidden=5632, vocabulary=32000, length=o.length)
    torch.manual_seed(0)
    theirs = Model(Torch, **shape).to(o.device)
    torch.manual_seed(0)
    ours = Model(Ours, **shape).to(o.device)
    tokens = torch.randint(0, shape["vocabulary"], (1 if small else 2, shape["length"]), device=o.device)
    rounds = 3 if small else 30
    result = {"schema": "tilewright small_lm 1", "shape": shape, "batch": tokens.shape[0], "torch": torch.__version__, "device": o.device if small else torch.cuda.get_device_name()}
    with torch.no_grad():
        want, got = theirs(tokens), ours(tokens)
        result["relative_difference"] = float((got.double() - want.double()).norm() / want.double().norm())
        result["same_best_token"] = float((got.argmax(-1) == want.argmax(-1)).float().mean())
        result["milliseconds"] = {"eager": timed(lambda: theirs(tokens), o.device, rounds), "ops": timed(lambda: ours(tokens), o.device, rounds)}
        explained = torch._dynamo.explain(ours)(tokens)
        result["graph_breaks"] = explained.graph_break_count
        backend = "eager" if small else "inductor"
        compiled_ours = torch.compile(ours, fullgraph=True, backend=backend)
        again = compiled_ours(tokens)
        result["compiled_difference"] = float((again.double() - want.double()).norm() / want.double().norm())
        if not small:
            compiled_theirs = torch.compile(theirs, fullgraph=True)
            compiled_theirs(tokens)
            result["milliseconds"]["eager compiled"] = timed(lambda: compiled_theirs(tokens), o.device, rounds)
            result["milliseconds"]["ops compiled"] = timed(lambda: compiled_ours(tokens), o.device, rounds)
            for name, model in (("eager as CUDA graph", theirs), ("ops as CUDA graph", ours)):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    static = model(tokens)
                static.zero_()
                graph.replay()
                torch.cuda.synchronize()
                result["milliseconds"][name] = timed(graph.replay, o.device, rounds)
                result.setdefault("graph_difference", {})[name] = float((static.double() - want.double()).norm() / want.double().norm())
    result["left_to_torch"] = [{"operation": n, "reason": r} for n, r in ops.fallbacks()]
    with open(o.out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
    print(f"logits differ by {result['relative_difference']:.1e} (compiled {result['compiled_difference']:.1e}); same best token for {100 * result['same_best_token']:.1f}%; {result['graph_breaks']} graph breaks")
    for name, ms in result["milliseconds"].items():
        print(f"  {name:22} {ms:8.3f} ms")
    for f in result["left_to_torch"]:
        print(f"  left to torch: {f['operation']}: {f['reason']}")


if __name__ == "__main__":
    main()
