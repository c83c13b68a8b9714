"""How long a user waits.

    python3 bench/latency.py PROGRAM OUT.json        from a kernel file to its cubin, program start included, with an empty and with a full cache; PROGRAM is
                                                     the tilewright binary; needs NVRTC, no GPU
    python3 bench/latency.py launch OUT.json         the host's time for one launch: a kernel and an operation from Python, the C interface, torch beside them;
                                                     needs a GPU, torch and, for the C interface, a C compiler
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def wall(words, cache):
    begin = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TILEWRIGHT_CACHE": cache}, timeout=120)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return seconds, done.stdout


C_LOOP = """
#include <stdint.h>
#include <time.h>
typedef int (*launch_t)(void*, const uint64_t*, const double*, uint64_t, void*);
double loop(launch_t launch, void* call, const uint64_t* addresses, void* stream, int count) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < count; ++i)
        if (launch(call, addresses, 0, 0, stream)) return -1;
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / count / 1000;
}
"""


def c_interface(kernel, tensors, torch):
    """Microseconds of tw_call_launch in a loop of C, or why there is no figure."""
    import ctypes

    from tilewright._library import library

    call = next(reversed(kernel._calls.values()))
    with tempfile.TemporaryDirectory() as folder:
        source, shared = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.so")
        with open(source, "w", encoding="utf-8") as f:
            f.write(C_LOOP)
        made = subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", shared], capture_output=True, text=True)
        if made.returncode:
            return None, made.stderr[:200]
        loop = ctypes.CDLL(shared).loop
    loop.restype, loop.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    addresses = (ctypes.c_uint64 * len(tensors))(*[t.data_ptr() for t in tensors])
    stream = torch.cuda.current_stream().cuda_stream
    samples = []
    for _ in range(20):
        torch.cuda.synchronize()
        samples.append(loop(ctypes.cast(library().tw_call_launch, ctypes.c_void_p), call.handle, addresses, stream, 200))
    torch.cuda.synchronize()
    return statistics.median(samples), None


def launches(out):
    """The host's time a call: batches of 200 that the queue takes without waiting, the GPU idle before each; the median of 20 batches."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
    import torch

    import tilewright
    import tilewright.ops as ops

    def host(call):
        for _ in range(20):
            call()
        samples = []
        for _ in range(20):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(200):
                call()
            samples.append((time.perf_counter() - begin) / 200 * 1e6)
        torch.cuda.synchronize()
        return statistics.median(samples)

    bf = lambda *s: torch.randn(*s, device="cuda").bfloat16()  # noqa: E731
    add, gemm = tilewright.load("vector_add.py").vector_add, tilewright.load("gemm_sm90.py").gemm
    split = tilewright.load("gemm_split_sm90.py").gemm_split
    x, y, z = (torch.randn(1024, device="cuda") for _ in range(3))
    a, b, c = bf(128, 128), bf(128, 128), bf(128, 128)
    s, t, u = bf(64, 1024), bf(64, 1024), bf(64, 64)
    rows = {"kernel, three vectors": host(lambda: add(x, y, z)), "kernel, three matrices by TMA": host(lambda: gemm(a, b, c)), "program with a buffer, two launches": host(lambda: split(s, t, u)),
            "ops.relu, output allocated": host(lambda: ops.relu(x)), "ops.linear, output allocated": host(lambda: ops.linear(a, b)), "torch.add(out=)": host(lambda: torch.add(x, y, out=z)),
            "torch.relu": host(lambda: torch.relu(x)), "torch.mm": host(lambda: torch.mm(a, b)), "torch.mm(out=)": host(lambda: torch.mm(a, b, out=c))}
    notes = []
    for name, kernel, tensors in (("C interface, three vectors", add, (x, y, z)), ("C interface, three matrices by TMA", gemm, (a, b, c))):
        us, problem = c_interface(kernel, tensors, torch)
        if us is None:
            notes.append(problem)
        else:
            rows[name] = us
    limits = {"kernel, three vectors": 8, "kernel, three matrices by TMA": 8, "C interface, three vectors": 3, "C interface, three matrices by TMA": 3}
    result = {"schema": "tilewright launch latency 1", "microseconds": {n: round(v, 2) for n, v in rows.items()}, "limits": limits, "within": all(rows.get(n, 0) <= v for n, v in limits.items()), "notes": notes,
              "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "command": "python3 bench/latency.py launch " + os.path.basename(out)}
    with open(out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
    for name, us in rows.items():
        print(f"  {name:38} {us:7.2f} us" + (f"   (limit {limits[name]})" if name in limits else ""))


def main():
    program, out = sys.argv[1:3]
    if program == "launch":
        return launches(out)
    rows = []
    for file, kernel in (("kernels/vector_add.py", "vector_add"), ("kernels/gemm_sm80.py", "gemm"), ("kernels/gemm_sm90.py", "gemm"), ("kernels/attention_sm90.py", "attention")):
        samples = {"start": [], "text": [], "cold": [], "nvrtc": [], "cached": [], "cache_lookup": []}
        for _ in range(7):
            with tempfile.TemporaryDirectory() as cache:
                samples["start"].append(wall([program, "--version"], cache)[0])
                samples["text"].append(wall([program, "emit", file, "--kernel", kernel, "--to", "cuda"], cache)[0])
                seconds, text = wall([program, "emit", file, "--kernel", kernel, "--to", "report", "--json"], cache)
                samples["cold"].append(seconds)
                samples["nvrtc"].append(sum(k["report"]["seconds"] for k in json.loads(text)["kernels"]))
                seconds, text = wall([program, "emit", file, "--kernel", kernel, "--to", "report", "--json"], cache)
                assert all(k["report"]["from_cache"] for k in json.loads(text)["kernels"])
                samples["cached"].append(seconds)
                samples["cache_lookup"].append(sum(k["report"]["seconds"] for k in json.loads(text)["kernels"]))
        rows.append({"file": file, "kernel": kernel, "milliseconds": {name: round(1000 * statistics.median(s), 2) for name, s in samples.items()}})
        print(rows[-1])
    meaning = {"start": "the program starts and ends", "text": "file to CUDA text", "cold": "file to cubin, empty cache", "nvrtc": "of it NVRTC and the cache's write",
               "cached": "file to cubin, full cache", "cache_lookup": "of it the look-up"}
    with open(out, "w") as f:
        json.dump({"cases": rows, "meaning": meaning, "samples": 7, "statistic": "median", "cores": os.cpu_count(), "command": "python3 bench/latency.py build/bin/tilewright " + os.path.basename(out)}, f, indent=1)


if __name__ == "__main__":
    main()
