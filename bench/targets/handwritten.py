"""The hand-written kernels as peers: how fast what the compiler prints is beside what was written by hand, in one run.

    python3 bench/targets/handwritten.py PROGRAM OUT.json [WORD]      the cases of bench/suites/*.json that have a hand-written kernel (and WORD in their name)

Below, each function binds one kernel to the tensors of a case; the variant is the one that the family's own table chooses for the shape.
"""
import functools
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
os.environ.setdefault("OUTDIR", "/tmp")

import harness as tw  # noqa: E402


@functools.lru_cache(maxsize=None)
def compiled(source, entry, defines):
    return tw.compile(os.path.join(HERE, source), entry=entry, defines=dict(defines), arch="sm_90a")


def build(source, entry, defines):
    return compiled(source, entry, tuple(sorted(defines.items())))


def gemm(a, b, c):
    import gemm as family

    chosen, variant = family.table(a.shape[0], b.shape[0], a.shape[1])
    return chosen.prepare(build(chosen.source, chosen.entry, family.macros(variant)), variant, a, b, c)


def attention(q, k, v, o, lse, causal):
    import attention as family

    variant = family.SHIPPED[(q.shape[-1], int(causal))]
    return family.Attention(tw, build(family.SOURCE, "attention", family.defines_of(variant)), variant).bind(q, k, v, o, lse)


def grouped(x, w, expert, y, index=None):
    import grouped as family
    import torch

    ends = torch.searchsorted(expert, torch.arange(1, w.shape[0] + 1, device="cuda", dtype=torch.int32)).to(torch.int32)

    variant = dict(CLUSTER=1, GATHER=1) if index is not None else family.choose(w.shape[0], y.shape[0])
    return family.prepare(build("grouped.cu", "grouped", family.full(variant)), variant, x, w, y, ends, index)


def rows(op, x, y, gamma=None, beta=None):
    import torch
    from memory_ops import prepare
    from memory_variants import best_variant

    m, n = x.shape
    variant = best_variant(op, x.element_size(), n)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    return prepare(tw, torch, build(variant.file, variant.entry, variant.defines), variant, op, [(x, y, gamma, beta)], m, n, sms)[0]


def peer_of(suite, case):
    """The expression that binds the hand-written kernel of a case, None where there is none."""
    name, kernel = case["case"], case.get("kernel", "")
    if suite == "gemm" and name.startswith("TN") and "f16" not in name:
        return "handwritten.gemm(A, B, C)"
    if suite == "attention" and " bf16 " in name and "GQA" not in name and "S3000" not in name:
        return f"handwritten.attention(Q, K, V, O, LSE, {'causal' in name})"
    if suite == "grouped" and kernel == "grouped_gemm":
        return "handwritten.grouped(X, W, expert, Y)"
    if suite == "grouped" and kernel == "gathered_gemm":
        return "handwritten.grouped(X, W, expert, Y, rows)"
    if suite == "memory" and kernel in ("softmax", "layernorm") and max(case["sizes"].values()) <= 65536:
        return f"handwritten.rows('{kernel}', X, Y{', gamma, beta' if kernel == 'layernorm' else ''})"
    return None


def main():
    program, out, word = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""
    root = os.path.dirname(os.path.dirname(HERE))
    cases = []
    for suite in ("gemm", "attention", "grouped", "memory"):
        with open(os.path.join(root, "bench", "suites", suite + ".json")) as f:
            for case in json.load(f)["cases"]:
                bind = peer_of(suite, case)
                if bind and word in case["case"] and case["file"].endswith(("_sm90.py",)):
                    cases.append({**case, "peers": [{"name": "hand-written", "prelude": f"import sys; sys.path.insert(0, {HERE!r}); import handwritten", "setup": f"run = {bind}", "torch": "run()"}]})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"suite": "hand-written", "cases": cases}, f)
        f.flush()
        done = subprocess.run([program, "bench", "--suite", f.name, "--rounds", "12", "--json", out], cwd=root)
    if os.path.exists(out):
        with open(out) as f:
            result = json.load(f)
        result["command"] = "python3 bench/targets/handwritten.py build/bin/tilewright bench/results/h200/handwritten.json"
        with open(out, "w") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
