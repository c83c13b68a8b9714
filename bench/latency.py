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
struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };
typedef int (*driver_t)(const struct config*, void*, void**, void**);
double driver_loop(driver_t launch, void* function, void* stream, int count) {
    struct timespec a, b;
    uint64_t words[4] = {0};
    void* arguments[4] = {words, words + 1, words + 2, words + 3};
    struct config c = {{1, 1, 1}, {256, 1, 1}, 0, stream, 0, 0};
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < count; ++i)
        if (launch(&c, function, arguments, 0)) return -1;
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / count / 1000;
}
"""
# A kernel that does nothing with the arguments of a small one: what is left is the driver's own time.
NOTHING = b""".version 7.8
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) { ret; }
\0"""


def c_loops():
    """The two loops of C_LOOP, or why there are none."""
    import ctypes

    with tempfile.TemporaryDirectory() as folder:
        source, shared = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.so")
        with open(source, "w", encoding="utf-8") as f:
            f.write(C_LOOP)
        made = subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", shared], capture_output=True, text=True)
        if made.returncode:
            return None, made.stderr[:200]
        loops = ctypes.CDLL(shared)
    loops.loop.restype, loops.loop.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    loops.driver_loop.restype, loops.driver_loop.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return loops, None


def batches(torch, once):
    """The median of 20 batches, the GPU idle before each."""
    samples = []
    for _ in range(20):
        torch.cuda.synchronize()
        samples.append(once())
    torch.cuda.synchronize()
    return statistics.median(samples)


def driver_alone(loops, torch):
    """Microseconds of cuLaunchKernelEx for a kernel that does nothing: no launch can take less on this host."""
    import ctypes

    cuda = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    if cuda.cuModuleLoadData(ctypes.byref(module), NOTHING) or cuda.cuModuleGetFunction(ctypes.byref(function), module, b"nothing"):
        return None
    stream = torch.cuda.current_stream().cuda_stream
    return batches(torch, lambda: loops.driver_loop(ctypes.cast(cuda.cuLaunchKernelEx, ctypes.c_void_p), function, stream, 200))


def c_interface(loops, kernel, tensors, torch):
    """Microseconds of tw_call_launch in a loop of C."""
    import ctypes

    from tilewright._library import library

    call = next(reversed(kernel._calls.values()))
    addresses = (ctypes.c_uint64 * len(tensors))(*[t.data_ptr() for t in tensors])
    stream = torch.cuda.current_stream().cuda_stream
    return batches(torch, lambda: loops.loop(ctypes.cast(library().tw_call_launch, ctypes.c_void_p), call.handle, addresses, stream, 200))


def launches(out):
    """The host's time a call: batches of 200 that the queue takes without waiting, the GPU idle before each; the median of 20 batches."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
    import torch

    import tilewright
    import tilewright.ops as ops

    def host(call):
        for _ in range(20):
            call()

        def once():
            begin = time.perf_counter()
            for _ in range(200):
                call()
            return (time.perf_counter() - begin) / 200 * 1e6

        return batches(torch, once)

    bf = lambda *s: torch.randn(*s, device="cuda").bfloat16()  # noqa: E731
    add, gemm = tilewright.load("vector_add.py").vector_add, tilewright.load("gemm_sm90.py").gemm
    split = tilewright.load("gemm_split_sm90.py").gemm_split
    x, y, z = (torch.randn(1024, device="cuda") for _ in range(3))
    a, b, c = bf(128, 128), bf(128, 128), bf(128, 128)
    s, t, u = bf(64, 1024), bf(64, 1024), bf(64, 64)
    q, k, v = (bf(1, 4, 128, 64) for _ in range(3))
    w, n, bias = bf(128, 128), bf(128), bf(128)
    rows = {"kernel, three vectors": host(lambda: add(x, y, z)), "kernel, three matrices by TMA": host(lambda: gemm(a, b, c)), "program with a buffer, two launches": host(lambda: split(s, t, u)),
            "ops.relu, output allocated": host(lambda: ops.relu(x)), "ops.linear, output allocated": host(lambda: ops.linear(a, b)),
            "ops.linear with bias and gelu": host(lambda: ops.linear(a, w, bias, "gelu_tanh")), "ops.rmsnorm": host(lambda: ops.rmsnorm(a, n)),
            "ops.attention, causal": host(lambda: ops.attention(q, k, v, causal=True)),
            "torch.add(out=)": host(lambda: torch.add(x, y, out=z)), "torch.relu": host(lambda: torch.relu(x)), "torch.mm": host(lambda: torch.mm(a, b)), "torch.mm(out=)": host(lambda: torch.mm(a, b, out=c)),
            "torch.empty_like": host(lambda: torch.empty_like(a))}
    notes = []
    loops, problem = c_loops()
    if loops is None:
        notes.append(problem)
    else:
        rows["C interface, three vectors"] = c_interface(loops, add, (x, y, z), torch)
        rows["C interface, three matrices by TMA"] = c_interface(loops, gemm, (a, b, c), torch)
        alone = driver_alone(loops, torch)
        if alone is not None:
            rows["the driver alone"] = alone
    limits = {name: 3 if name.startswith("C interface") else 8 for name in rows if name.startswith(("kernel", "ops", "C interface"))}
    result = {"schema": "tilewright launch latency 1", "microseconds": {n: round(v, 2) for n, v in rows.items()}, "limits": limits, "within": all(rows[n] <= v for n, v in limits.items()), "notes": notes,
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
