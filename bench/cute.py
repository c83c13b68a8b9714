#!/usr/bin/env python3
"""CuTe text against CUDA text of the same kernels: `tilewright emit --to cute` and `--to cuda`, one IR, timed interleaved.

    python3 bench/cute.py emit PROGRAM [--out build-cute] [--only NAMES]         # no GPU needed: both texts of every case
    python3 bench/cute.py compile [--out build-cute] [--jobs 16]                 # no GPU needed: the CuTe texts with nvcc, side by side
    python3 bench/cute.py run [--out build-cute] --json bench/results/h200/cute.json [--jobs 16] [--seconds 90] [--keep]

The cases are every kernel of FILES: products, activations, softmax, norms, reductions, attention and its gradients. `emit` takes the variant that a launch of the case's shape would take, in both forms. `run` checks the
CuTe text against the CUDA text (outputs poisoned first), and both against fp64 where `reference` knows the function, ragged shapes too; then times them as graphs over rotating inputs. ratio = CUDA's time / CuTe's time: over 1
means that the CuTe text is faster. Exit status 1 when an answer is wrong. What is not compiled yet is compiled by `--jobs` processes beside the run. The cases of the JSON that is there are run first to last by their
ratios, those that it does not have before them. `--seconds`: no case is begun later; what was left out is named, or keeps the row that the JSON has of it (`--keep`, for a table that takes several runs).
"""
import argparse
import concurrent.futures
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
    ("softmax bf16 1024x50001, clusters", "softmax_sm90", "softmax", {"M": 1024, "N": 50001}, {"M": 5, "N": 20011}),
    ("cumsum bf16 8192x2047", "cumsum_sm90", "cumsum", {"M": 8192, "N": 2047}, {"M": 37, "N": 1001}),
    ("grouped_gemm bf16 E8 (sm_80)", "grouped_gemm_sm80", "grouped_gemm", {"T": 2048, "P": 4096, "E": 8, "N": 4096, "K": 2048, "TILES": 72}, {"T": 50, "P": 100, "E": 4, "N": 72, "K": 40, "TILES": 8}),
    ("grouped_gemm bf16 E8", "grouped_gemm_sm90", "grouped_gemm", {"P": 4096, "E": 8, "N": 4096, "K": 4096, "BATCHES": 4}, {"P": 100, "E": 4, "N": 72, "K": 520, "BATCHES": 1}),
    ("gathered_gemm bf16 E8", "grouped_gemm_sm90", "gathered_gemm", {"T": 2048, "P": 4096, "E": 8, "N": 4096, "K": 4096, "BATCHES": 4}, {"T": 50, "P": 100, "E": 4, "N": 72, "K": 40, "BATCHES": 1}),
    ("gathered_swiglu bf16 E8", "gathered_swiglu_sm90", "gathered_swiglu", {"T": 2048, "P": 4096, "E": 8, "N": 4096, "K": 4096, "BATCHES": 4}, {"T": 50, "P": 100, "E": 4, "N": 72, "K": 40, "BATCHES": 1}),
    ("cache_update bf16", "cache_update_sm90", "cache_update", {"T": 8192, "S": 16384, "N": 4096}, {"T": 37, "S": 100, "N": 1000}),
    ("permute_rows bf16", "cache_update_sm90", "permute_rows", {"T": 8192, "N": 4096}, {"T": 37, "N": 1000}),
    ("embedding_gradient_atomic bf16", "scatter_add", "embedding_gradient_atomic", {"P": 16384, "N": 1024, "V": 32000}, {"P": 37, "N": 1000, "V": 5}),
    ("weighted_rows_atomic bf16", "scatter_add", "weighted_rows_atomic", {"P": 16384, "N": 1024, "V": 32000}, {"P": 37, "N": 1000, "V": 5}),
    ("bincount i32", "scatter_add", "bincount", {"P": 1 << 24, "V": 4096}, {"P": 3001, "V": 7}),
]
# Index tensors: a function of bench/suite_inputs.py and its arguments, by kernel.
INDICES = {
    ("grouped_gemm_sm80", "grouped_gemm"): ("routed_tiles", {"top_k": 2, "balanced": False, "tile": 64}),
    ("grouped_gemm_sm90", "grouped_gemm"): ("routed_rows", {"load": "zipf"}),
    ("grouped_gemm_sm90", "gathered_gemm"): ("routed_rows", {"load": "zipf"}),
    ("gathered_swiglu_sm90", "gathered_swiglu"): ("routed_rows", {"load": "zipf"}),
    ("cache_update_sm90", "cache_update"): ("places", {"tensor": "slot", "count": "T", "of": "S", "distinct": True}),
    ("cache_update_sm90", "permute_rows"): ("places", {"tensor": "to", "count": "T", "of": "T", "distinct": True}),
    ("scatter_add", "embedding_gradient_atomic"): ("places", {"tensor": "token", "count": "P", "of": "V"}),
    ("scatter_add", "weighted_rows_atomic"): ("places", {"tensor": "token", "count": "P", "of": "V"}),
    ("scatter_add", "bincount"): ("places", {"tensor": "X", "count": "P", "of": "V"}),
}
# Kernels that leave elements of their outputs as they were, or add to them: those start at zero, not poisoned.
KEEPS = ("cache_update", "embedding_gradient_atomic")


# Every other kernel of these files, at the first of the sizes that a variant of it takes.
FILES = ["activations", "softmax", "softmax_sm90", "layernorm", "layernorm_sm90", "rmsnorm", "rmsnorm_sm90", "reductions", "reductions_sm90", "gemm_sm80", "gemm_sm90", "gemm_cluster_sm90", "gemm_deferred_sm90", "gemm_fused_sm90",
         "gemm_small_sm90", "gemm_thin_sm90", "gemm_skinny_sm90", "gemm_split_sm90", "gemm_misaligned_sm90", "gemm_f32_sm90", "gemm_fp8_sm90", "gemm_int8_tf32_sm90", "gemm_w4_sm90", "attention_sm90", "attention_variants_sm90",
         "attention_backward_sm90"]
OWN_SIZES = {"gemm_small": {"M": 1024, "N": 1024, "K": 1024}, "gemm_thin": {"M": 128, "N": 8192, "K": 8192}, "gemm_skinny": {"M": 16, "N": 8192, "K": 8192}, "split_products": {"M": 512, "N": 512, "K": 16384},
             "add_splits": {"M": 512, "N": 512}, "pad_rows": {"M": 4096, "N": 4096, "K": 4095}, "gemm_padded": {"M": 4096, "N": 4096, "K": 4095},
             "gemm_w4": {"M": 16, "N": 8192, "KB": 64}}
USUAL_SIZES = [{"M": 4096, "N": 4096, "K": 4096, "KB": 32, "NB": 32, "H": 4096, "A": 16, "R": 1024, "B": 2048},
               {"B": 2, "HK": 16, "H": 16, "S": 2048, "T": 2048, "D": 128}, {"N": 1 << 26}, {"M": 8192, "N": 1024}]
NEEDS_DATA = {"attention_packed": "its index tensors describe documents"}  # random numbers are no input


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
    if kernel in ("attention", "attention_causal"):
        q, k, v = (tensors[n].float() for n in "QKV")
        groups = q.shape[1] // k.shape[1]
        scores = (q @ k.repeat_interleave(groups, 1).transpose(-1, -2)) * (next(iter(scalars.values())) * 0.6931471805599453)
        if kernel == "attention_causal":
            scores.masked_fill_(torch.ones(q.shape[2], k.shape[2], device=q.device, dtype=torch.bool).triu(1 + k.shape[2] - q.shape[2]), float("-inf"))
        return scores.softmax(-1) @ v.repeat_interleave(groups, 1)
    if kernel in ("gemm", "gemm_cluster", "gemm_deferred_tn", "gemm_small", "gemm_thin", "gemm_skinny", "gemm_padded"):
        a, b = tensors["A"], tensors["B"]
        return a.float() @ b.float().t() if a.numel() * b.shape[0] > 1 << 34 else d["A"] @ d["B"].t()
    if kernel == "row_mean":
        return x.mean(-1)
    if kernel == "row_min":
        return x.amin(-1)
    if kernel == "column_sum":
        return x.sum(0)
    return None


class Shape:
    """What plan.sizes_of looks at, without a GPU."""

    def __init__(self, dtype, shape, strides):
        self.dtype, self.shape, self.strides = "torch." + dtype, tuple(shape), tuple(strides)

    def stride(self):
        return self.strides


def fits(plan_module, entry, sizes):
    planned = plan_module.PlannedKernel(entry, None)
    try:
        tensors = {t["name"]: Shape(plan_module.DTYPES.get(t["dtype"], t["dtype"]), [plan_module.value(d, sizes) for d in t["dims"]], [plan_module.value(d, sizes) for d in t["strides"]]) for t in entry["tensors"]}
        return planned.sizes_of(tensors) is not None
    except (plan_module.Unfit, KeyError, NameError):
        return False


def headers():
    named = os.environ.get("CUTLASS_INCLUDE")
    found = [named] if named else glob.glob(str(ROOT / ".deps/venv/lib/python3*/site-packages/cutlass_library/source/include")) + glob.glob(str(ROOT / "dist/*/share/cutlass/include"))
    if not found or not os.path.exists(os.path.join(found[0], "cute/tensor.hpp")):
        sys.exit("CuTe's headers are not here: scripts/setup.sh installs them, or set CUTLASS_INCLUDE")
    return found[0]


def emitted(o, file, kernel, form):
    """The kernels of a file, or one of them, as `emit` prints them; a kernel without text has an `error`."""
    words = [o.program, "emit", f"kernels/{file}.py", "--to", form, "--json"] + (["--kernel", kernel] if kernel else [])
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT).stdout)["kernels"]


def all_cases(o, plans_of):
    import plan
    known = {(file, kernel) for _, file, kernel, _, _ in CASES}
    yield from CASES
    for file in FILES:
        for kernel in dict.fromkeys(k["name"] for k in plans_of(file)):
            if (file, kernel) in known or kernel in NEEDS_DATA:
                continue
            entries = [k for k in plans_of(file) if k["name"] == kernel]
            tried = ([OWN_SIZES[kernel]] if kernel in OWN_SIZES else []) + [{n: u[n] for n in entries[0]["sizes"]} for u in USUAL_SIZES if all(n in u for n in entries[0]["sizes"])]
            sizes = next((t for t in tried if any(fits(plan, e, t) for e in entries)), None)
            yield f"{kernel} {entries[0]['tensors'][0]['dtype']} ({file})", file, kernel, sizes, None


def emit(o):
    import functools
    import plan
    out = pathlib.Path(o.out)
    out.mkdir(parents=True, exist_ok=True)
    o.program = str(pathlib.Path(o.program).resolve())
    plans_of = functools.lru_cache(None)(lambda file: emitted(o, file, None, "plan"))
    texts_of = functools.lru_cache(None)(lambda file, kernel: emitted(o, file, kernel, "cute"))
    index = {}
    for name, file, kernel, sizes, ragged in all_cases(o, plans_of):
        if o.only and not any(word in name for word in o.only.split(",")):
            continue
        plans = [p for p in plans_of(file) if p["name"] == kernel]
        picked = next((i for i, p in enumerate(plans) if sizes and fits(plan, p, sizes)), None)
        text = texts_of(file, kernel)[picked] if picked is not None else {"error": "no variant takes the usual sizes"}
        if "error" in text:
            print(f"{name}: no CuTe text: {text['error']}")
            index[name] = {"error": text["error"], "file": f"kernels/{file}.py", "kernel": kernel}
            continue
        stem = f"{file}-{kernel}-{picked}"
        (out / f"{stem}.json").write_text(json.dumps({"kernels": [plans[picked]]}))
        source = out / f"{stem}.cu"
        if not source.exists() or source.read_text() != text["source"]:
            source.write_text(text["source"])
            (out / f"{stem}.so").unlink(missing_ok=True)
        index[name] = {"stem": stem, "launcher": text["launcher"], "variant": text["variant"], "file": f"kernels/{file}.py", "kernel": kernel, "sizes": sizes, "ragged": ragged}
    (out / "index.json").write_text(json.dumps(index, indent=1))
    print(f"{sum('error' not in e for e in index.values())} of {len(index)} cases have CuTe text")


def compiled(out, stem, began):
    """The text as a shared library, by nvcc. The host's part is one launcher: nothing there is worth optimising."""
    start, library = time.monotonic(), out / f"{stem}.so"
    if library.exists():
        return 0
    ran = subprocess.run(["nvcc", "-std=c++17", "-O3", "-Xcompiler", "-O0", "-arch=sm_90a", "--expt-relaxed-constexpr", "-shared", "-cudart", "shared", "-Xcompiler", "-fPIC", "-Xptxas", "-v", "-I", headers(),
                          "-L", "/usr/local/cuda/lib64/stubs", "-o", str(out / f"{stem}.part.so"), str(out / f"{stem}.cu"), "-lcuda"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode:
        (out / f"{stem}.log").write_text(ran.stdout)
    else:
        (out / f"{stem}.part.so").rename(library)
    used = [line for line in ran.stdout.splitlines() if "Used" in line or "spill" in line or "serialized" in line]
    print(f"{time.monotonic() - began:5.0f} s  {stem}: {'does not compile' if ran.returncode else 'compiled'} in {time.monotonic() - start:.0f} s; {' '.join(' '.join(used).split())[:200] if not ran.returncode else ran.stdout[-600:]}", flush=True)
    return ran.returncode


def compile_all(o):
    out, began = pathlib.Path(o.out), time.monotonic()
    stems = sorted({e["stem"] for e in json.loads((out / "index.json").read_text()).values() if "stem" in e}, key=lambda stem: -(out / f"{stem}.cu").stat().st_size)  # the longest first
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        return 1 if any(list(pool.map(lambda stem: compiled(out, stem, began), stems))) else 0


def zeroing(call, zeroed):
    """The call with what the CuTe launcher does before its kernel, by the same means: outputs that are added to start at zero."""
    driver = ctypes.CDLL("libcuda.so.1") if zeroed else None

    def both():
        import torch
        for tensor in zeroed:
            driver.cuMemsetD8Async(ctypes.c_void_p(tensor.data_ptr()), ctypes.c_ubyte(0), ctypes.c_size_t(tensor.numel() * tensor.element_size()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        call()
    return both if zeroed else call


def run(o):
    import torch
    import harness
    import plan
    import suite_inputs
    out, cases, failed = pathlib.Path(o.out), [], False
    index = json.loads((out / "index.json").read_text())
    before = {c["case"]: c for c in json.loads(pathlib.Path(o.json).read_text())["cases"]} if o.json and os.path.exists(o.json) else {}
    index = dict(sorted(index.items(), key=lambda item: before.get(item[0], {}).get("ratio", 0.0)))
    torch.manual_seed(5)
    began = time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(o.jobs)
    ready = {stem: pool.submit(compiled, out, stem, began) for stem in dict.fromkeys(e["stem"] for e in index.values() if "stem" in e)}

    def left_out(name, entry, status):
        cases.append(before[name] if o.keep and "ratio" in before.get(name, {}) else {"case": name, "file": entry["file"], "kernel": entry["kernel"], "status": status})

    for name, entry in [(n, e) for n, e in index.items() if "error" in e]:
        cases.append({"case": name, "file": entry["file"], "kernel": entry["kernel"], "status": "no text", "message": entry["error"]})
    waiting = {n: e for n, e in index.items() if "stem" in e}
    while waiting:
        name = next((n for n, e in waiting.items() if ready[e["stem"]].done()), None)  # the first that is there
        if o.seconds and time.monotonic() - began > o.seconds:
            for n, e in waiting.items():
                ready[e["stem"]].cancel()
                left_out(n, e, "not reached")
            break
        if name is None:
            time.sleep(0.05)
            continue
        entry = waiting.pop(name)
        if ready[entry["stem"]].result():
            left_out(name, entry, "not built")
            failed = True
            continue
        planned = next(iter(plan.load(str(out / f"{entry['stem']}.json")).values()))
        described = planned.list[0].plan
        library = ctypes.CDLL(str((out / f"{entry['stem']}.so").resolve()))
        launcher = getattr(library, entry["launcher"])
        launcher.restype = ctypes.c_int
        scalars = {s["name"]: 1.4426950408889634 / 128**0.5 if s["name"] == "scale" else 1e-5 for s in described["scalars"]}

        def made(sizes):
            tensors = {}
            function, arguments = INDICES.get((pathlib.Path(entry["file"]).stem, entry["kernel"]), (None, {}))
            if function == "routed_rows":
                arguments = {**arguments, "tokens": sizes.get("T", sizes["P"])}
            indices = suite_inputs.make(function, sizes, arguments) if function else {}
            for t in described["tensors"]:
                shape, strides = ([plan.value(d, sizes) for d in t[what]] for what in ("dims", "strides"))
                dtype = getattr(torch, plan.DTYPES.get(t["dtype"], t["dtype"]))
                if t["name"] in indices:
                    values = torch.tensor(indices[t["name"]], device="cuda", dtype=torch.int32).view(shape)
                elif dtype in (torch.int8, torch.uint8, torch.int32):
                    values = torch.randint(-8, 8, shape, device="cuda", dtype=torch.int32)
                else:  # a row's log-sum is above its elements
                    values = torch.randn(shape, device="cuda", dtype=torch.float32) + (12.0 if t["name"] == "LSE" and not t["output"] else 0.0)
                tensors[t["name"]] = torch.empty_strided(shape, strides, device="cuda", dtype=dtype).copy_(values)
                if t["dtype"] == "tf32":  # 10 bits of mantissa
                    tensors[t["name"]].view(torch.int32).bitwise_and_(-8192)
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
            outputs = [t for t in described["tensors"] if t["output"]]
            tolerance = 1e-2 if any(t["dtype"] not in ("f32", "i32") for t in described["tensors"]) else 1e-5
            for sizes in filter(None, [entry["ragged"], entry["sizes"]]):
                tensors, answers = made(sizes), {}
                want = reference(entry["kernel"], tensors, scalars)
                for form, call in (("cute", cute(tensors, sizes)), ("cuda", planned.prepare(scalars, **tensors))):
                    for t in outputs:
                        tensors[t["name"]].zero_() if t["zeroed"] or entry["kernel"] in KEEPS else harness.poison(tensors[t["name"]])
                    call()
                    torch.cuda.synchronize()
                    answers[form] = {t["name"]: tensors[t["name"]].clone() for t in outputs}
                    if want is not None:
                        first = answers[form]["O" if entry["kernel"].startswith("attention") else outputs[0]["name"]]
                        row["checks"].append({"form": form, "against": "fp64", "sizes": sizes, **harness.check(first.reshape(want.shape), want, tolerance)})
                for t in outputs:
                    ours, theirs = answers["cute"][t["name"]], answers["cuda"][t["name"]]
                    got = harness.check(ours.double(), theirs.double(), (1e-5 if "atomic" in entry["kernel"] else 1e-6) if t["dtype"] in ("f32", "i32") else 2e-3)
                    row["checks"].append({"form": "cute", "against": "our CUDA text", "output": t["name"], "sizes": sizes, "equal_bits": bool(torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8))), **got})
                if not all(c["ok"] for c in row["checks"]):
                    row["status"] = "wrong"
                del tensors, want, answers, ours, theirs
            if row["status"] == "right":
                bytes_of_one = sum(v.numel() * v.element_size() for v in made(entry["sizes"]).values())
                sets = max(1, min(4, -(-(256 << 20) // bytes_of_one)))
                data = [made(entry["sizes"]) for _ in range(sets)]
                forms = {"cuda": [zeroing(planned.prepare(scalars, **t), [t[o["name"]] for o in outputs if o["zeroed"]]) for t in data], "cute": [cute(t, entry["sizes"]) for t in data]}
                timed = harness.interleave({f: (lambda i, c=c: c[i]()) for f, c in forms.items()}, rotations=sets, rounds=o.rounds, warmup_ms=40.0, target_graph_us=1200.0, baseline="cuda")
                ratio = timed["ratios"]["cuda/cute"]
                row.update(ours_us=timed["cute"]["median_us"], ours_interval=[timed["cute"]["lo_us"], timed["cute"]["hi_us"]], peer_us=timed["cuda"]["median_us"], ratio=ratio["ratio"], interval=[ratio["lo"], ratio["hi"]])
                del data, forms
        except Exception as e:  # one case that fails must not lose the others
            row.update(status="failed", message=str(e)[:500])
        failed |= row["status"] != "right"
        cases.append(row)
        torch.cuda.empty_cache()
        print(f"{name[:48]:48} {row['status']:7} cuda {row.get('peer_us', 0):9.1f} us  cute {row.get('ours_us', 0):9.1f} us  ratio {row.get('ratio', 0):.3f}", flush=True)
        if o.json:
            rest = [before[n] for n in index if o.keep and "ratio" in before.get(n, {}) and n not in {c["case"] for c in cases}]
            pathlib.Path(o.json).write_text(json.dumps({"suite": "cute", "command": "python3 bench/cute.py run --json bench/results/h200/cute.json --keep", "versions": {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}, "cases": cases + rest}, indent=1) + "\n")
    pool.shutdown(wait=False, cancel_futures=True)
    ratios = [c["ratio"] for c in cases if c.get("ratio")]
    states = {s: sum(c["status"] == s for c in cases) for s in dict.fromkeys(c["status"] for c in cases)}
    print(f"{states}; within 3 %: {sum(r >= 1 / 1.03 for r in ratios)} of {len(ratios)}; under: {[(c['case'], round(c['ratio'], 3)) for c in cases if c.get('ratio') and c['ratio'] < 1 / 1.03]}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    e = commands.add_parser("emit")
    e.add_argument("program")
    e.add_argument("--only", help="cases whose names hold one of these words, with commas between")
    c = commands.add_parser("compile")
    c.add_argument("--jobs", type=int, default=16)
    r = commands.add_parser("run")
    r.add_argument("--json")
    r.add_argument("--rounds", type=int, default=16)
    r.add_argument("--seconds", type=float, default=0)
    r.add_argument("--jobs", type=int, default=16)
    r.add_argument("--keep", action="store_true")
    for p in (e, c, r):
        p.add_argument("--out", default=str(ROOT / "build-cute"))
    o = parser.parse_args()
    return {"emit": emit, "compile": compile_all, "run": run}[o.command](o)


if __name__ == "__main__":
    sys.exit(main())
