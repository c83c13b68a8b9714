"""Every operation on elements, for every type that has it, over edge values: emulator and GPU against the fp64 reference of the same equation.

The one definition is src/ir/element_math.h. Each row is a kernel of one tile, `Y[n] = operation(X[n], Z[n])`, written and run here with given inputs: on the emulator, and with
--target gpu on this machine's GPU (compiled by NVRTC), each judged by its own reference (the CPU's evaluator, and the equation printed as CUDA). Results that are
integers must be equal; floats within the tolerance of their type. Needs neither torch nor numpy.

    python3 bench/probes/probe_elements.py --tool dist/bin/tilewright --target gpu --out bench/results/h200/probe_elements.json
"""
import argparse
import concurrent.futures
import glob
import itertools
import json
import os
import subprocess
import sys
import tempfile

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

BITS = {"i8": 8, "u8": 8, "i16": 16, "i32": 32, "u32": 32}
SIGNED = {"i8", "i16", "i32"}
FLOATS = ("f32", "bf16", "f16")


def integers(dtype):
    n = BITS[dtype]
    low, high = (-(1 << n - 1), (1 << n - 1) - 1) if dtype in SIGNED else (0, (1 << n) - 1)
    small = [v for v in (-17, -16, -9, -8, -3, -2, -1, 0, 1, 2, 3, 7, 8, 15, 16, 17, 100) if low <= v <= high]
    return sorted(set(small + [low, low + 1, low + 2, high - 2, high - 1, high, (low + high) // 2 + 1]))


# Exact in bf16, f16 and f32.
REALS = [-240.0, -96.0, -3.5, -2.0, -1.5, -1.0, -0.5, -0.125, 0.0, 0.125, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 96.0, 240.0]
# Not exact in a narrower type; ties both ways.
UNROUND = [v * s for s in (1, -1) for v in (0.0, 1.0, 1.001953125, 1.005859375, 1.00390625, 1.01171875, 3.14159274, 7.0625, 9.5, 15.9375, 17.0, 100.0625, 255.9375, 257.0, 259.0, 447.0, 0.0390625, 0.017578125)]
BEYOND = [v * s for s in (1, -1) for v in (0.0, 0.49, 0.5, 0.99, 1.0, 1.5, 126.9, 127.0, 127.5, 128.0, 254.5, 255.0, 255.9, 256.0, 300.0, 32766.5, 32767.0, 32768.0, 65536.0, 2147483392.0, 2147483648.0, 4294966784.0, 4294967296.0, 1e20)]


def pairs(values, divisor=False):
    both = [(a, b) for a, b in itertools.product(values, values) if not (divisor and b == 0)]
    return [a for a, _ in both], [b for _, b in both]


def cases():
    """(operation, type, output type, equation, expression of the kernel, X, Z)"""
    for t in BITS:
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floor division", "//"), ("remainder", "%")):
            x, z = pairs(integers(t), sign in ("//", "%"))
            yield name, t, t, f"X[n] {sign} Z[n]", f"x {sign} z", x, z
        for name, f in (("minimum", "minimum"), ("maximum", "maximum")):
            yield (name, t, t, f"{f}(X[n], Z[n])", f"tw.{f}(x, z)", *pairs(integers(t)))
        for name, sign in (("less", "<"), ("at most", "<="), ("equal", "=="), ("not equal", "!="), ("greater", ">"), ("at least", ">=")):
            yield (name, t, "f32", f"where(X[n] {sign} Z[n], 1.0, 0.0)", f"tw.where(x {sign} z, 1.0, 0.0)", *pairs(integers(t)))
        yield "negative", t, t, "-X[n]", "-x", integers(t), integers(t)
        if t in SIGNED:
            yield "absolute value", t, t, "abs(X[n])", "tw.abs(x)", integers(t), integers(t)
        for to in BITS:   # low bits
            yield f"cast to {to}", t, to, f"{to}(X[n])", f"x.to({to})", integers(t), integers(t)
        yield "cast to f32", t, "f32", "f32(X[n])", "x.to(f32)", integers(t), integers(t)
        for to in ("bf16", "f16"):   # compared, so that the rounding is part of the equation
            small = [v for v in integers(t) if abs(v) < 60000] + [v for v in (2047, 2049, 2051, 257, 259, 1001) if v in range(-(1 << 15), 1 << BITS[t] - 1)]
            yield f"cast to {to}", t, "f32", f"floor(f32({to}(X[n])))", f"tw.floor(x.to({to}).to(f32))", small, small
    for t in FLOATS:
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("division", "/")):
            x, z = pairs(REALS, sign == "/")
            stated = f"f32(X[n]) {sign} f32(Z[n])"
            # of a narrow type the result is one of it too, and the equation says so
            yield name, t, "f32", stated if t == "f32" else f"f32({t}({stated}))", f"(x {sign} z).to(f32)", x, z
        for name, f in (("minimum", "minimum"), ("maximum", "maximum")):
            yield (name, t, "f32", f"{f}(f32(X[n]), f32(Z[n]))", f"tw.{f}(x, z).to(f32)", *pairs(REALS))
        for name, sign in (("less", "<"), ("at most", "<="), ("equal", "=="), ("not equal", "!=")):
            yield (name, t, "f32", f"where(X[n] {sign} Z[n], 1.0, 0.0)", f"tw.where(x {sign} z, 1.0, 0.0)", *pairs(REALS))
        yield "negative", t, "f32", "-f32(X[n])", "(-x).to(f32)", REALS, REALS
        yield "absolute value", t, "f32", "abs(f32(X[n]))", "tw.abs(x).to(f32)", REALS, REALS
        for to in BITS:   # towards zero, to the ends of the type
            values = [v for v in BEYOND if t == "f32" or abs(v) < 60000]
            yield f"cast to {to}", t, to, f"{to}(f32(X[n]))", f"x.to({to})", values, values
    for to in ("bf16", "f16", "tf32", "e4m3", "e5m2"):
        yield f"cast to {to}", "f32", "f32", f"floor(f32({to}(X[n])) * 4096.0)", f"tw.floor(x.to({to}).to(f32) * 4096.0)", UNROUND, UNROUND
    positive = [v for v in REALS if v > 0]
    for f in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "floor", "ceil"):
        values = positive if f in ("log", "log2", "sqrt", "rsqrt") else [v for v in REALS if abs(v) < 80]
        yield f, "f32", "f32", f"{f}(X[n])", f"tw.{f}(x)", values, values
    yield "reciprocal", "f32", "f32", "recip(X[n])", "tw.rcp(x)", positive, positive
    x, z = pairs(positive[:8])
    yield "power", "f32", "f32", "pow(X[n], Z[n])", "tw.pow(x, z)", x, z
    yield "fused multiply-add", "f32", "f32", "fma(X[n], Z[n], X[n])", "tw.fma(x, z, x)", x, z


def text(case):
    _, t, to, equation, expression, _, _ = case
    fill = "0.0" if t in FLOATS else "0"
    return f'''import tilewright as tw
from tilewright import bf16, e4m3, e5m2, f16, f32, i8, i16, i32, tf32, u8, u32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = {equation}", threads=128)
def element(X: tw.Tensor({t}, N), Z: tw.Tensor({t}, N), Y: tw.Tensor({to}, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill={fill})
    z = tw.load(Z[i : i + 128], fill={fill if t in FLOATS else "1"})
    tw.store(Y[i : i + 128], {expression})
'''


def run(tool, case, target, number, folder):
    name, t, to, _, _, x, z = case
    kernel, inputs = (os.path.join(folder, f"{number}.{end}") for end in ("py", "json"))
    with open(kernel, "w") as f:
        f.write(text(case))
    with open(inputs, "w") as f:
        json.dump({"X": x, "Z": z}, f)
    row = {"operation": name, "type": t, "result": to, "values": len(x)}
    for where in ["cpu"] + (["gpu"] if target == "gpu" else []):
        command = [tool, "run", kernel, "--set", f"N={len(x)}", "--inputs", inputs, "--target", where, "--json"]
        if to in BITS:
            command += ["--tolerance", "1e-30"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        row["emulator" if where == "cpu" else "gpu"] = {0: "equal", 1: "different"}.get(done.returncode, f"exit {done.returncode}")
        if done.returncode != 0:
            row["detail"] = (done.stdout[-700:] + done.stderr[-700:]).strip()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool")
    parser.add_argument("--target", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="operations whose name has this in it")
    args = parser.parse_args()
    tool = args.tool or max(glob.glob(os.path.join(REPOSITORY, "build*/bin/tilewright")) + glob.glob(os.path.join(REPOSITORY, "dist/**/bin/tilewright"), recursive=True), key=os.path.getmtime, default=None)
    if not tool:
        sys.exit("tilewright was not found under build*/bin or dist/; build it or pass --tool")
    wanted = [c for c in cases() if args.only in c[0]]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda c: run(os.path.abspath(tool), c[1], args.target, c[0], folder), enumerate(wanted)))
    sides = ["emulator"] + (["gpu"] if args.target == "gpu" else [])
    result = {"command": "python3 bench/probes/probe_elements.py --target " + args.target, "rows": rows, "checked": sum(r["values"] for r in rows),
              "differences": sum(r[s] != "equal" for r in rows for s in sides)}
    for r in rows:
        if any(r[s] != "equal" for s in sides):
            print(json.dumps(r))
    print(f"{len(rows)} operations and types, {result['checked']} values, {result['differences']} rows with a difference")
    if args.out:
        with open(args.out, "w") as f:
            json.dump(result, f, indent=1)
    sys.exit(1 if result["differences"] else 0)


if __name__ == "__main__":
    main()
