#!/usr/bin/env python3
"""CuTe text against CUDA text of the same kernels: `tilewright emit --to cute` and `--to cuda`, one IR, timed interleaved.

    python3 bench/cute.py build PROGRAM [--out build-cute] [--only NAMES]        # no GPU needed: emits both, compiles the CuTe text with nvcc
    python3 bench/cute.py run [--out build-cute] --json bench/results/h200/cute.json

`build` takes the variant that a launch of the case's shape would take, in both forms. `run` checks both against fp64 (outputs poisoned first, ragged shapes too) and then times them as graphs over
rotating inputs. ratio = CUDA's time / CuTe's time: over 1 means that the CuTe text is faster. Exit status 1 when an answer is wrong.
"""
import argparse
import ctypes
import glob
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))


# Name, file, kernel, sizes that are timed, ragged sizes that are checked besides.
CASES = [
    ("relu bf16 2^26", "activations", "relu", {"N": 1 << 26}, {"N": 1000003}),
    ("silu bf16 2^26", "activations", "silu", {"N": 1 << 26}, {"N": 999}),
    ("sigmoid bf16 2^26", "activations", "sigmoid", {"N": 1 << 26}, {"N": 4097}),
    ("gelu bf16 2^26", "activations", "gelu", {"N": 1 << 26}, {"N": 100001}),
    ("gelu_tanh bf16 2^26", "activations", "gelu_tanh", {"N": 1 << 26}, {"N": 77777}),
    ("softmax bf16 8192x4096", "softmax_sm90", "softmax", {"M": 8192, "N": 4096}, None),
    ("layernorm bf16 8192x4096", "layernorm_sm90", "layernorm", {"M": 8192, "N": 4096}, None),
    ("rmsnorm bf16 8192x4096", "rmsnorm_sm90", "rmsnorm", {"M": 8192, "N": 4096}, None),
    ("row_sum bf16 8192x4096", "reductions_sm90", "row_sum", {"M": 8192, "N": 4096}, None),
    ("row_max bf16 8192x4096", "reductions_sm90", "row_max", {"M": 8192, "N": 4096}, None),
    ("softmax bf16 2048x32768, clusters", "softmax_sm90", "softmax", {"M": 2048, "N": 32768}, None),
    ("layernorm bf16 2048x32768, clusters", "layernorm_sm90", "layernorm", {"M": 2048, "N": 32768}, None),
    ("cumsum bf16 8192x2048", "cumsum_sm90", "cumsum", {"M": 8192, "N": 2048}, {"M": 37, "N": 1000}),
    ("softmax f32 8192x1024 (sm_80)", "softmax", "softmax", {"M": 8192, "N": 1024}, {"M": 37, "N": 1000}),
    ("gemm bf16 4096^3 (sm_80)", "gemm_sm80", "gemm", {"M": 4096, "N": 4096, "K": 4096}, {"M": 200, "N": 264, "K": 136}),
    ("gemm bf16 4096^3", "gemm_sm90", "gemm", {"M": 4096, "N": 4096, "K": 4096}, {"M": 200, "N": 264, "K": 136}),
    ("gemm bf16 8192^3", "gemm_sm90", "gemm", {"M": 8192, "N": 8192, "K": 8192}, None),
    ("gemm bf16 4096^3, clusters", "gemm_cluster_sm90", "gemm_cluster", {"M": 4096, "N": 4096, "K": 4096}, {"M": 200, "N": 264, "K": 136}),
    ("attention bf16 d128, 4 x 16 heads, 4096", "attention_sm90", "attention", {"B": 4, "HK": 16, "S": 4096, "T": 4096}, {"B": 1, "HK": 3, "S": 200, "T": 333}),
    ("attention causal bf16 d128, 4 x 16 heads, 4096", "attention_sm90", "attention_causal", {"B": 4, "HK": 16, "S": 4096, "T": 4096}, {"B": 1, "HK": 3, "S": 333, "T": 333}),
]


def reference(kernel, tensors, scalars):
    """The output in fp64, by the kernel's name and the names of its parameters."""
    import torch
    F = torch.nn.functional
    d = {k: v.double() for k, v in tensors.items() if v.dtype.is_floating_point}
    x = d.get("X")
    if kernel == "relu":
        return x.relu()
    if kernel == "silu":
        return F.silu(x)
    if kernel == "sigmoid":
        return x.sigmoid()
    if kernel == "gelu":
        return F.gelu(x)
    if kernel == "gelu_tanh":
        return F.gelu(x, approximate="tanh")
    if kernel == "softmax":
        return x.softmax(-1)
    if kernel == "cumsum":
        return x.cumsum(-1)
    if kernel == "row_max":
        return x.amax(-1)
    if kernel == "row_sum":
        return x.sum(-1)
    if kernel in ("layernorm", "rmsnorm"):
        weight = next(v for k, v in d.items() if k != "X" and v.dim() == 1)
        eps = next(iter(scalars.values()), 0.0)
        if kernel == "rmsnorm":
            return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight
        bias = [v for k, v in d.items() if k != "X" and v.dim() == 1][1]
        return (x - x.mean(-1, keepdim=True)) * (x.var(-1, unbiased=False, keepdim=True) + eps).rsqrt() * weight + bias
    if kernel.startswith("attention"):
        q, k, v = (tensors[n].float() for n in "QKV")
        groups = q.shape[1] // k.shape[1]
        scores = (q @ k.repeat_interleave(groups, 1).transpose(-1, -2)) * (next(iter(scalars.values())) * 0.6931471805599453)
        if kernel == "attention_causal":
            scores.masked_fill_(torch.ones(q.shape[2], k.shape[2], device=q.device, dtype=torch.bool).triu(1 + k.shape[2] - q.shape[2]), float("-inf"))
        return scores.softmax(-1) @ v.repeat_interleave(groups, 1)
    if kernel.startswith("gemm"):
        a, b = tensors["A"], tensors["B"]
        return a.float() @ b.float().t() if a.numel() * b.shape[0] > 1 << 34 else d["A"] @ d["B"].t()
    raise KeyError(kernel)


class Shape:
    """What plan.sizes_of looks at, without a GPU."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = "torch." + dtype, tuple(shape)

    def stride(self):
        out, n = [], 1
        for e in reversed(self.shape):
            out.insert(0, n)
            n *= e
        return tuple(out)


def fits(plan_module, entry, sizes):
    planned = plan_module.PlannedKernel(entry, None)
    try:
        tensors = {t["name"]: Shape(plan_module.DTYPES[t["dtype"]], [plan_module.value(d, sizes) for d in t["dims"]]) for t in entry["tensors"]}
        return planned.sizes_of(tensors) is not None
    except (plan_module.Unfit, KeyError, NameError):
        return False


def headers():
    named = os.environ.get("CUTLASS_INCLUDE")
    found = [named] if named else glob.glob(str(ROOT / ".deps/venv/lib/python3*/site-packages/cutlass_library/source/include")) + glob.glob(str(ROOT / "dist/*/share/cutlass/include"))
    if not found or not os.path.exists(os.path.join(found[0], "cute/tensor.hpp")):
        sys.exit("CuTe's headers are not here: scripts/setup.sh installs them, or set CUTLASS_INCLUDE")
    return found[0]


def build(o):
    import plan
    out = pathlib.Path(o.out)
    out.mkdir(parents=True, exist_ok=True)
    index = json.loads((out / "index.json").read_text()) if (out / "index.json").exists() else {}
    for name, file, kernel, sizes, ragged in CASES:
        if o.only and not any(word in name for word in o.only.split(",")):
            continue
        path = ROOT / "kernels" / f"{file}.py"
        plans = json.loads(subprocess.run([o.program, "emit", str(path), "--kernel", kernel, "--to", "plan", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout)["kernels"]
        texts = json.loads(subprocess.run([o.program, "emit", str(path), "--kernel", kernel, "--to", "cute", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)["kernels"]
        picked = next((i for i, p in enumerate(plans) if fits(plan, p, sizes)), None)
        if picked is None or "error" in texts[picked]:
            print(f"{name}: no CuTe text: {texts[picked]['error'] if picked is not None else 'no variant fits'}")
            index[name] = {"error": texts[picked]["error"] if picked is not None else "no variant fits"}
            continue
        stem = f"{file}-{kernel}-{picked}"
        (out / f"{stem}.json").write_text(json.dumps({"kernels": [plans[picked]]}))
        source, library = out / f"{stem}.cu", out / f"{stem}.so"
        if not (library.exists() and source.exists() and source.read_text() == texts[picked]["source"]):
            source.write_text(texts[picked]["source"])
            began = time.monotonic()
            ran = subprocess.run(["nvcc", "-std=c++17", "-O3", "-arch=sm_90a", "--expt-relaxed-constexpr", "-shared", "-Xcompiler", "-fPIC", "-Xptxas", "-v", "-I", headers(),
                                  "-L", "/usr/local/cuda/lib64/stubs", "-o", str(library), str(source), "-lcuda"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if ran.returncode:
                source.unlink()
                sys.exit(ran.stdout[-3000:])
            used = [line for line in ran.stdout.splitlines() if "Used" in line or "spill" in line]
            print(f"{name}: compiled in {time.monotonic() - began:.0f} s; {' '.join(' '.join(used).split())}", flush=True)
        index[name] = {"stem": stem, "launcher": texts[picked]["launcher"], "variant": texts[picked]["variant"], "file": f"kernels/{file}.py", "kernel": kernel, "sizes": sizes, "ragged": ragged}
        (out / "index.json").write_text(json.dumps(index, indent=1))


def run(o):
    import torch
    import harness
    import plan
    out, cases, failed = pathlib.Path(o.out), [], False
    index = json.loads((out / "index.json").read_text())
    torch.manual_seed(5)
    for name, entry in index.items():
        if "error" in entry:
            cases.append({"case": name, "status": "no text", "message": entry["error"]})
            continue
        planned = next(iter(plan.load(str(out / f"{entry['stem']}.json")).values()))
        described = planned.list[0].plan
        library = ctypes.CDLL(str((out / f"{entry['stem']}.so").resolve()))
        launcher = getattr(library, entry["launcher"])
        launcher.restype = ctypes.c_int
        scalars = {s["name"]: 1.4426950408889634 / 128**0.5 if s["name"] == "scale" else 1e-5 for s in described["scalars"]}

        def made(sizes):
            tensors = {}
            for t in described["tensors"]:
                shape = [plan.value(d, sizes) for d in t["dims"]]
                tensors[t["name"]] = torch.randn(shape, device="cuda", dtype=torch.float32).to(getattr(torch, plan.DTYPES[t["dtype"]]))
            return tensors

        def cute(tensors, sizes):
            words = [ctypes.c_void_p(tensors[t["name"]].data_ptr()) for t in described["tensors"]]
            words += [ctypes.c_int(sizes[s]) for s in described["sizes"]] + [ctypes.c_float(v) for v in scalars.values()]

            def call():
                code = launcher(*words, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
                if code:
                    raise RuntimeError(f"{name}: CUDA error {code}")
            return call

        row = {"case": name, "file": entry["file"], "kernel": entry["kernel"], "variant": entry["variant"], "sizes": entry["sizes"], "peer": "our CUDA text", "status": "right", "checks": []}
        try:
            outputs = ["O"] if entry["kernel"].startswith("attention") else [t["name"] for t in described["tensors"] if t.get("output", t.get("is_output"))] or [described["tensors"][-1]["name"]]
            tolerance = 1e-2 if any(t["dtype"] in ("bf16", "f16") for t in described["tensors"]) else 1e-5
            for sizes in filter(None, [entry["ragged"], entry["sizes"]]):
                tensors = made(sizes)
                want = reference(entry["kernel"], tensors, scalars)
                for form, call in (("cute", cute(tensors, sizes)), ("cuda", planned.prepare(scalars, **tensors))):
                    harness.poison(tensors[outputs[0]])
                    call()
                    torch.cuda.synchronize()
                    got = harness.check(tensors[outputs[0]].reshape(want.shape), want, tolerance)
                    row["checks"].append({"form": form, "sizes": sizes, **got})
                    if not got["ok"]:
                        row["status"] = "wrong"
                del tensors, want
            if row["status"] == "right":
                bytes_of_one = sum(v.numel() * v.element_size() for v in made(entry["sizes"]).values())
                sets = max(1, min(4, -(-(256 << 20) // bytes_of_one)))
                data = [made(entry["sizes"]) for _ in range(sets)]
                forms = {"cuda": [planned.prepare(scalars, **t) for t in data], "cute": [cute(t, entry["sizes"]) for t in data]}
                timed = harness.interleave({f: (lambda i, c=c: c[i]()) for f, c in forms.items()}, rotations=sets, rounds=o.rounds, warmup_ms=40.0, target_graph_us=1200.0, baseline="cuda")
                ratio = timed["ratios"]["cuda/cute"]
                row.update(ours_us=timed["cute"]["median_us"], ours_interval=[timed["cute"]["lo_us"], timed["cute"]["hi_us"]], peer_us=timed["cuda"]["median_us"], ratio=ratio["ratio"], interval=[ratio["lo"], ratio["hi"]])
                del data, forms
        except Exception as e:  # one case that fails must not lose the others
            row.update(status="failed", message=str(e)[:500])
        failed |= row["status"] != "right"
        cases.append(row)
        torch.cuda.empty_cache()
        print(f"{name:34} {row['status']:7} cuda {row.get('peer_us', 0):9.1f} us  cute {row.get('ours_us', 0):9.1f} us  ratio {row.get('ratio', 0):.3f}", flush=True)
        if o.json:
            pathlib.Path(o.json).write_text(json.dumps({"suite": "cute", "command": "python3 bench/cute.py run --json bench/results/h200/cute.json", "versions": {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}, "cases": cases}, indent=1) + "\n")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    b = commands.add_parser("build")
    b.add_argument("program")
    b.add_argument("--only", help="cases whose names hold one of these words, with commas between")
    r = commands.add_parser("run")
    r.add_argument("--json")
    r.add_argument("--rounds", type=int, default=20)
    for p in (b, r):
        p.add_argument("--out", default=str(ROOT / "build-cute"))
    o = parser.parse_args()
    return build(o) if o.command == "build" else run(o)


if __name__ == "__main__":
    sys.exit(main())
