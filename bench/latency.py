"""How long a user waits from a kernel file to its cubin, program start included, with an empty and with a full cache.

    python3 bench/latency.py PROGRAM OUT.json        PROGRAM is the tilewright binary; needs NVRTC, no GPU
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


def main():
    program, out = sys.argv[1:3]
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
