"""Exported kernels on a GPU: random ones against the emulator bit for bit, mutants against the unbroken kernel and compute-sanitizer.

    tilewright crosscheck --export FOLDER --count 500 --jobs 2
    python3 bench/gpu_kernels.py random FOLDER OUT.json
    python3 bench/gpu_kernels.py repeat FOLDER OUT.json [SECONDS]     every kernel launched again and again: what depends on timing shows
    tilewright mutate kernels/gemm_sm90.py --limit 1 --export FOLDER
    python3 bench/gpu_kernels.py mutants FOLDER OUT.json [PROCESSES]

Needs neither torch nor numpy: memory is the driver's, through ctypes. Mutants run in a process each, with a timeout.
"""
import array
import base64
import concurrent.futures
import ctypes
import glob
import json
import math
import os
import random
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness as tw  # noqa: E402
import plan as plans  # noqa: E402

SIZES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1, "i32": 4, "u32": 4, "i8": 1, "u8": 1, "i64": 8, "f64": 8, "i16": 2, "bool": 1}
GUARD = 4096   # bytes of 0xff on either side of every tensor
RIGHT, WRONG, REFUSED, FAULT, HANG = 0, 10, 11, 12, 13


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        count = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), 16, device)
        self.sms = count.value

    def call(self, name, *args):
        code = getattr(self.cuda, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")


class Buffer:
    """A tensor in device memory between two guards; quacks like torch's for harness.py and plan.py."""

    def __init__(self, driver, dtype, dims, strides):
        self.driver, self.dtype_name, self.shape, self.strides = driver, dtype, tuple(dims), tuple(strides)
        self.dtype = plans.DTYPES.get(dtype, dtype)
        self.bytes = SIZES[dtype] * (1 + sum((d - 1) * s for d, s in zip(dims, strides)) if all(dims) else 0)
        self.whole = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.whole), ctypes.c_size_t(self.bytes + 2 * GUARD))

    def data_ptr(self):
        return self.whole.value + GUARD

    def element_size(self):
        return SIZES[self.dtype_name]

    def stride(self):
        return self.strides

    def put(self, data):
        whole = b"\xff" * GUARD + data + b"\xff" * GUARD
        self.driver.call("cuMemcpyHtoD_v2", self.whole, whole, ctypes.c_size_t(len(whole)))

    def get(self):
        whole = ctypes.create_string_buffer(self.bytes + 2 * GUARD)
        self.driver.call("cuMemcpyDtoH_v2", whole, self.whole, ctypes.c_size_t(len(whole)))
        raw = whole.raw
        intact = raw[:GUARD] == b"\xff" * GUARD and raw[GUARD + self.bytes:] == b"\xff" * GUARD
        return raw[GUARD:GUARD + self.bytes], intact

    def free(self):
        self.driver.call("cuMemFree_v2", self.whole)


def loaded(plan, arch="sm_90a"):
    kernel = tw.compile(source=plan["source"], name=plan["name"] + ".cu", entry=plan["entry"], arch=arch)
    return plans.PlannedKernel(plan, kernel)


def compiled_once(plan_list):
    """A kernel per plan; equal texts are compiled once."""
    texts = {}
    for p in plan_list:
        texts.setdefault(p["source"], p)
    made = tw.compile_many([dict(source=p["source"], name=p["name"] + ".cu", entry=p["entry"], arch="sm_90a") for p in texts.values()], workers=os.cpu_count())
    made = dict(zip(texts, made))
    return [made[p["source"]] for p in plan_list]


def by_name(plan):
    return {t["name"]: t for t in plan["tensors"]}


# ---------------------------------------------------------------------------------------------- random kernels, bit for bit


def random_main(folder, out):
    files = sorted(glob.glob(os.path.join(folder, "*.json")))
    data = [json.load(open(f)) for f in files]
    started = time.time()
    kernels = compiled_once([d["kernels"][0] for d in data])
    compiled = time.time() - started
    driver = Driver()
    rows, wrong = {}, []
    for d, kernel in zip(data, kernels):
        plan = d["kernels"][0]
        row = rows.setdefault(d["family"], dict(kernels=0, cases=0, right=0, wrong=0, refused=0))
        row["kernels"] += 1
        if kernel.error:
            row["refused"] += 1
            wrong.append(dict(seed=d["seed"], family=d["family"], what="does not compile", detail=kernel.error[:400]))
            continue
        planned = plans.PlannedKernel(plan, kernel)
        types = by_name(plan)
        for case in d["cases"]:
            row["cases"] += 1
            buffers, verdict = {}, None
            try:
                for t in case["tensors"]:
                    b = Buffer(driver, types[t["name"]]["dtype"], t["dims"], t["strides"])
                    b.put(base64.b64decode(t["bytes"])[:b.bytes])
                    buffers[t["name"]] = b
                planned.prepare(driver.sms, case["scalars"], buffers)()
                driver.call("cuCtxSynchronize")
                for t in case["tensors"]:
                    got, intact = buffers[t["name"]].get()
                    want = base64.b64decode(t.get("expected", t["bytes"]))[:len(got)]
                    if not intact:
                        verdict = f"writes outside {t['name']}"
                    elif got != want:
                        at = next(i for i in range(len(got)) if got[i] != want[i]) // SIZES[types[t["name"]]["dtype"]]
                        verdict = f"{t['name']} element {at} differs"
            except plans.Unfit as e:
                verdict = "unfit: " + str(e)
            except RuntimeError as e:
                wrong.append(dict(seed=d["seed"], family=d["family"], what="CUDA error, the run ends here", detail=str(e), sizes=case["sizes"]))
                report(out, rows, wrong, compiled, started)
                raise
            for b in buffers.values():
                b.free()
            row["right" if verdict is None else "wrong"] += 1
            if verdict:
                wrong.append(dict(seed=d["seed"], family=d["family"], what=verdict, sizes=case["sizes"]))
    report(out, rows, wrong, compiled, started)


def report(out, rows, wrong, compiled, started):
    totals = {k: sum(r[k] for r in rows.values()) for k in next(iter(rows.values()))}
    result = dict(command="tilewright crosscheck --export FOLDER --count N; python3 bench/gpu_kernels.py random FOLDER OUT.json",
                  rows=[dict(family=f, **r) for f, r in sorted(rows.items())], totals=totals, wrong=wrong,
                  seconds=dict(compile=round(compiled, 1), all=round(time.time() - started, 1)))
    with open(out, "w") as f:
        json.dump(result, f, indent=1)
    print(json.dumps(totals), f"compile {compiled:.1f} s, all {time.time() - started:.1f} s")
    for w in wrong[:40]:
        print(w)


# ---------------------------------------------------------------------------------------------- mutants


def launch_fifty_times(driver, planned, types, case, row):
    """One case, each launch from fresh outputs and compared bit for bit."""
    buffers = {}
    for t in case["tensors"]:
        buffers[t["name"]] = Buffer(driver, types[t["name"]]["dtype"], t["dims"], t["strides"])
        buffers[t["name"]].put(base64.b64decode(t["bytes"])[:buffers[t["name"]].bytes])
    launch = planned.prepare(driver.sms, case["scalars"], buffers)
    outputs = [t for t in case["tensors"] if "expected" in t]
    for _ in range(50):
        for t in outputs:
            buffers[t["name"]].put(base64.b64decode(t["bytes"])[:buffers[t["name"]].bytes])
        launch()
        driver.call("cuCtxSynchronize")
        row["launches"] += 1
        for t in outputs:
            got, _ = buffers[t["name"]].get()
            want = base64.b64decode(t["expected"])[:len(got)]
            if got == want:
                continue
            row["different"] += 1
            size = SIZES[types[t["name"]]["dtype"]]
            places = [i for i in range(len(got) // size) if got[i * size:i * size + size] != want[i * size:i * size + size]]
            if len(row["examples"]) < 4:
                row["examples"].append({"sizes": case["sizes"], "tensor": t["name"], "count": len(places), "places": places[:40]})
    for b in buffers.values():
        b.free()


def repeat_main(folder, out, seconds):
    data = [json.load(open(f)) for f in sorted(glob.glob(os.path.join(folder, "*.json")))]
    kernels = compiled_once([d["kernels"][0] for d in data])
    driver = Driver()
    rows, end = [], time.time() + seconds
    for number, (d, kernel) in enumerate(zip(data, kernels)):
        row = {"seed": d["seed"], "family": d["family"], "launches": 0, "different": 0, "examples": []}
        if kernel.error:
            row["error"] = kernel.error[:300]
        else:
            plan = d["kernels"][0]
            stop = time.time() + (end - time.time()) / (len(data) - number)
            while time.time() < stop:
                for case in d["cases"]:
                    launch_fifty_times(driver, plans.PlannedKernel(plan, kernel), by_name(plan), case, row)
        rows.append(row)
    launches, different = (sum(r[k] for r in rows) for k in ("launches", "different"))
    json.dump({"command": "tilewright crosscheck --exact --family tma_ring --export FOLDER; python3 bench/gpu_kernels.py repeat FOLDER OUT.json", "launches": launches, "different": different, "rows": rows}, open(out, "w"), indent=1)
    print(f"{len(rows)} kernels, {launches} launches, {different} different")


def shapes_for(plan, sanitized):
    """What a tester would try: whole tiles, ragged edges, something tiny. Sizes that the assumptions refuse are rounded up."""
    choices = [dict(big=136)] if sanitized else [dict(big=512), dict(big=264), dict(big=200), dict(big=1)]
    names = plan["sizes"]
    for c in choices:
        sizes = {}
        for i, n in enumerate(names):
            v = c["big"]
            if n in ("B", "H", "E"):
                v = min(v, 2)
            elif not sanitized and c["big"] > 1:
                v += 64 * (i % 2)   # not all equal: a transposed index must show
            sizes[n] = v
        for m in (1, 4, 8, 16, 32, 64):
            tried = {n: -(-v // m) * m for n, v in sizes.items()}
            if all(plans.value(a["condition"], tried) for a in plan["assumptions"]):
                yield tried
                break


def random_bytes(dtype, count, seed, limit):
    rng = random.Random(seed)
    if dtype in ("f32",):
        return array.array("f", (rng.uniform(-1, 1) for _ in range(count))).tobytes()
    if dtype == "bf16":
        return b"".join(struct.pack("<f", rng.uniform(-1, 1))[2:] for _ in range(count))
    if dtype == "f16":
        return struct.pack(f"<{count}e", *(rng.uniform(-1, 1) for _ in range(count)))
    return array.array("i", (rng.randrange(0, max(1, limit)) for _ in range(count))).tobytes()


def numbers(dtype, data):
    if dtype == "f32":
        return array.array("f", data)
    if dtype == "bf16":
        return array.array("f", b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2)))
    if dtype == "f16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    return array.array("i", data)


def differs(dtype, want, got, tolerance):
    if want == got:
        return None
    a, b = numbers(dtype, want), numbers(dtype, got)
    finite = [x for x in a if math.isfinite(x)]
    rms = math.sqrt(sum(x * x for x in finite) / len(finite)) if finite else 0
    for i, (x, y) in enumerate(zip(a, b)):
        if x == y or (math.isnan(x) and math.isnan(y)):
            continue
        if not (math.isfinite(x) and math.isfinite(y)) or abs(x - y) > tolerance * max(abs(x), rms):
            return f"element {i} is {y:g}, {x:g} before"
    return None


def one_main(path, sanitized):
    """One mutant in this process: the unbroken kernel makes the expected outputs, then the mutant runs on the same inputs."""
    d = json.load(open(path))
    original, mutant = loaded(d["original"]), loaded(d["mutant"])
    driver = Driver()
    plan = d["original"]
    outputs = set(d["tolerance"])
    for sizes in shapes_for(plan, sanitized):
        def buffers():
            made = {}
            for i, t in enumerate(plan["tensors"]):
                dims = [plans.value(x, sizes) for x in t["dims"]]
                strides = [plans.value(x, sizes) for x in t["strides"]]
                b = Buffer(driver, t["dtype"], dims, strides)
                count = b.bytes // SIZES[t["dtype"]]
                if t["name"] in outputs:
                    b.put((b"\0" if t["zeroed"] else b"\xff") * b.bytes)
                else:
                    b.put(random_bytes(t["dtype"], count, 17 + i, 1))
                made[t["name"]] = b
            return made
        scalars = {s["name"]: 0.5 for s in plan["scalars"]}
        want = {}
        if not sanitized:
            first = buffers()
            original.prepare(driver.sms, scalars, first)()
            driver.call("cuCtxSynchronize")
            want = {n: first[n].get()[0] for n in outputs}
        for _ in range(1 if sanitized else 3):
            second = buffers()
            mutant.prepare(driver.sms, scalars, second)()
            driver.call("cuCtxSynchronize")
            if sanitized:
                continue
            for n in second:
                got, intact = second[n].get()
                if not intact:
                    print(f"{sizes}: writes outside {n}")
                    return WRONG
                if n in outputs:
                    why = differs(by_name(plan)[n]["dtype"], want[n], got, d["tolerance"][n])
                    if why:
                        print(f"{sizes}: {n}: {why}")
                        return WRONG
            for b in second.values():
                b.free()
    return RIGHT


def one_safely(path, sanitized):
    try:
        return one_main(path, sanitized)
    except (plans.Unfit, tw.TilewrightError) as e:
        print(str(e)[:300])
        return FAULT if "CUDA_ERROR" in str(e) else REFUSED
    except RuntimeError as e:
        print(str(e)[:300])
        return FAULT


CAUGHT = ("wrong output", "CUDA error", "hang", "reported")
TOOLS = ("memcheck", "racecheck", "synccheck")


def attempt(path, tool, limit):
    command = [sys.executable, os.path.abspath(__file__), "one", path, "sanitized" if tool else "plain"]
    if tool:
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99", "--print-limit", "3"] + command
    started = time.time()
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        code, text = p.returncode, p.stdout[-2000:] + p.stderr[-500:]
    except subprocess.TimeoutExpired:
        code, text = HANG, ""
    what = {RIGHT: "nothing", WRONG: "wrong output", REFUSED: "refused", FAULT: "CUDA error", HANG: "hang", 99: "reported"}.get(code, f"exit {code}")
    return dict(tool=tool or "random tests", what=what, detail=text.strip().splitlines()[-1][:200] if text.strip() else "", seconds=round(time.time() - started, 1))


def mutants_main(folder, out, processes):
    files = sorted(glob.glob(os.path.join(folder, "*.json")))
    data = {f: json.load(open(f)) for f in files}
    started = time.time()
    compiled = compiled_once([d[which] for d in data.values() for which in ("original", "mutant")])
    refused = sum(1 for k in compiled if k.error)
    print(f"compiled {len(compiled)} in {time.time() - started:.1f} s, {refused} refused", flush=True)
    deadline = started + float(os.environ.get("GPU_KERNELS_SECONDS", "150"))
    results = {f: [] for f in files}

    def work(job):
        path, tool = job
        if time.time() > deadline:
            return path, dict(tool=tool or "random tests", what="not run", detail="", seconds=0)
        return path, attempt(path, tool, 8 if tool is None else 12)

    def save():
        rows = []
        for f in files:
            d = data[f]
            rows.append({k: d[k] for k in ("kernel", "operator", "change", "line", "verdict", "real", "evidence")} | {"gpu": results[f]})
        counts = {}
        for r in rows:
            if not r["real"]:
                continue
            counts["real"] = counts.get("real", 0) + 1
            counts["verifier"] = counts.get("verifier", 0) + (r["verdict"] == "caught")
            tried = [g for g in r["gpu"] if g["what"] != "not run"]
            for g in tried:
                counts.setdefault(g["tool"] + " ran", 0)
                counts[g["tool"] + " ran"] += 1
                counts.setdefault(g["tool"], 0)
                counts[g["tool"]] += g["what"] in CAUGHT
            counts["any on the GPU"] = counts.get("any on the GPU", 0) + any(g["what"] in CAUGHT for g in tried)
        with open(out, "w") as f:
            json.dump(dict(command="tilewright mutate KERNELS --limit 1 --export FOLDER; python3 bench/gpu_kernels.py mutants FOLDER OUT.json", totals=counts, rows=rows), f, indent=1)
        return counts

    order = [(f, tool) for tool in (None,) + TOOLS for f in files]
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        for n, (path, result) in enumerate(pool.map(work, order)):
            results[path].append(result)
            if n % 50 == 49:
                save()
    print(json.dumps(save(), indent=1), f"{time.time() - started:.1f} s")


def main():
    verb = sys.argv[1]
    if verb == "random":
        random_main(sys.argv[2], sys.argv[3])
    elif verb == "repeat":
        repeat_main(sys.argv[2], sys.argv[3], float(sys.argv[4]) if len(sys.argv) > 4 else 40.0)
    elif verb == "mutants":
        mutants_main(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 8)
    elif verb == "one":
        sys.exit(one_safely(sys.argv[2], sys.argv[3] == "sanitized"))


if __name__ == "__main__":
    main()
