"""The operators of the memory-bound targets: arguments and grids of their kernels, references in fp64, torch's own way.

Every operator maps x (rows x n) to y; layernorm also takes weight and bias of n.
"""
import math

EPS = 1e-5
# Relative Frobenius error against fp64: rounding of the output to its type, and a few ulp of fp32 arithmetic.
TOLERANCE = {2: 3e-3, 4: 5e-6}
ROW_WISE = ("softmax", "layernorm", "cumsum")  # row r of y depends on row r of x alone


def output_shape(op, rows, n):
    return (n, rows) if op == "transpose" else (n,) if op == "colsum" else (rows, n)


def bytes_moved(op, rows, n, elem):
    """The least that must go through memory: x read once, y written once."""
    return (rows + 1) * n * elem if op == "colsum" else 2 * rows * n * elem


def prepare(tw, torch, kernel, v, op, sets, rows, n, sms):
    """Callables by input set: launches of the variant."""
    calls = []
    for x, y, w, b in sets:
        grid = (v.grid(kernel, rows, sms), 1, 1) if op in ROW_WISE else None
        d = v.defines
        if op == "stream":
            total = x.numel() * x.element_size()
            args = [x, y, tw.i64(total)]
            blocks = total // (d["PIECE"] if d["MODE"] == 2 else d["THREADS"] * d["UNROLL"] * 16)
            grid = (min(blocks, int(v.resident_blocks(kernel, sms) * v.waves)) if v.waves else blocks, 1, 1)
        elif op == "layernorm":
            args = [x, w, b, y, tw.i32(rows), tw.i32(n), tw.f32(EPS)]
        elif op == "transpose":
            args = [x, y, tw.i32(rows), tw.i32(n)]
            grid = (-(-n // 64) * -(-rows // d["TILE_R"]), 1, 1)
        elif op == "colsum":
            strips = -(-n * x.element_size() // (d["LANES"] * 16))
            splits = max(1, min(rows // 64, int(v.resident_blocks(kernel, sms) * v.waves) // strips))
            partial = torch.empty(splits * n, device="cuda", dtype=torch.float32)
            tickets = torch.zeros(strips, device="cuda", dtype=torch.int32)
            args = [x, y, partial, tickets, tw.i32(rows), tw.i32(n)]
            grid = (strips, splits, 1)
        else:
            args = [x, y, tw.i32(rows), tw.i32(n)]
        shared = v.shared_bytes
        if 46 * 1024 < shared <= 48 * 1024:  # the kernel's static shared memory counts against the 48 KB that are free to use
            shared = 48 * 1024 + 16
        calls.append(kernel.prepare(grid=grid, block=(v.threads, 1, 1), args=args, smem=shared,
                                    cluster=(v.cluster, 1, 1) if v.cluster > 1 else None))
    return calls


def apply(torch, op, x, w, b):
    """What torch computes, in x's precision."""
    if op == "softmax":
        return torch.softmax(x, -1)
    if op == "layernorm":
        return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b, EPS)
    if op == "cumsum":
        return torch.cumsum(x, -1)
    if op == "transpose":
        return x.t().contiguous()
    return x.sum(0)


def error_of(torch, out, op, x, w, b):
    """Relative Frobenius error, row-wise operators in chunks; NaN where none belongs (or a missing one) is an infinite error."""
    if op == "transpose":
        return 0.0 if torch.equal(out, x.t()) else float("inf")
    if op == "colsum":
        step = max(1, (1 << 25) // x.shape[-1])
        ref = sum(x[r:r + step].double().sum(0) for r in range(0, x.shape[0], step))
        error = float(torch.linalg.vector_norm(out.double() - ref) / torch.linalg.vector_norm(ref))
        return error if error == error else float("inf")
    num = den = 0.0
    step = max(1, (1 << 25) // x.shape[-1])
    for r in range(0, x.shape[0], step):
        ref = apply(torch, op, x[r:r + step].double(), w.double(), b.double())
        got = out[r:r + step].double()
        if bool((torch.isnan(ref) != torch.isnan(got)).any()):
            return float("inf")
        ref, got = torch.nan_to_num(ref), torch.nan_to_num(got)
        num += float(((got - ref) ** 2).sum())
        den += float((ref ** 2).sum())
    return (num / den) ** 0.5 if den else num ** 0.5


def make_input(torch, kind, rows, n, dtype, generator):
    x = torch.randn(rows, n, device="cuda", generator=generator)
    if kind == "large":
        x *= 1e4
    elif kind == "offset":
        x += 300
    elif kind == "masked":  # a causal-like mask, and one row with nothing left
        x.masked_fill_(torch.rand(rows, n, device="cuda", generator=generator) < 0.5, float("-inf"))
        x[rows // 2] = float("-inf")
        x[0, : max(0, n - 1)] = float("-inf")
    return x.to(dtype)


def guarded_output(torch, shape, dtype):
    """An output between two guards, all NaN; unwritten elements and writes outside both show."""
    guard = 1024
    count = math.prod(shape)
    whole = torch.full((count + 2 * guard,), float("nan"), device="cuda", dtype=dtype)
    return whole, whole[guard:guard + count].view(shape)


def guards_intact(torch, whole, count):
    return bool(torch.isnan(whole[:1024]).all()) and bool(torch.isnan(whole[1024 + count:]).all())
