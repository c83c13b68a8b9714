"""The families of probe_target.py. Each is a function that yields rows: instruction, variant, checked, differences, first."""
import ctypes
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import torch  # noqa: E402

import harness as tw  # noqa: E402

FIXED = os.path.join(HERE, "target_probes.cu")
POISON = 0xCD
DEVICE = "cuda"


def versions():
    driver = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(driver))
    return {"gpu": torch.cuda.get_device_name(0), "driver_api": driver.value, "torch": torch.__version__}


def row(instruction, variant, checked, differences, first=""):
    r = {"instruction": instruction, "variant": variant, "checked": int(checked), "differences": int(differences)}
    if differences:
        r["first"] = first
    return r


def compare(instruction, variant, got, expected, describe=None):
    """got and expected: integer tensors of one shape (bit patterns or exact values)."""
    got, expected = got.cpu().reshape(-1), expected.cpu().reshape(-1)
    if got.numel() != expected.numel():
        return row(instruction, variant, expected.numel(), max(1, expected.numel()), f"sizes {got.numel()} and {expected.numel()}")
    wrong = (got != expected).nonzero().reshape(-1)
    first = ""
    if wrong.numel():
        at = wrong[:: max(1, wrong.numel() // 8)].tolist()
        first = "; ".join(f"at {describe(i) if describe else i}: got {got[i].item()}, expected {expected[i].item()}" for i in at)
    return row(instruction, variant, expected.numel(), wrong.numel(), first)


def fixed(entry):
    return tw.compile(FIXED, entry=entry)


def i32s(values):
    return torch.tensor([v - (1 << 32) if v >= 1 << 31 else v for v in values], dtype=torch.int32)


_tensors = {}


def table(values):
    """A list of the cases as a tensor, converted once."""
    key = id(values)
    if key not in _tensors:
        _tensors[key] = (values, torch.tensor(values))  # the list is kept, so its id stays its own
    return _tensors[key][1]


def as_bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


# ---------------------------------------------------------------------------------------------------------------------
# Small integers as bit patterns of each element type

RANGE = {"bf16": 127, "f16": 500, "tf32": 1000, "f32": 1000, "e4m3": 15, "e5m2": 7, "i8": 127, "u8": 255, "i32": 1000}
UNSIGNED = {"u8"}
STORAGE = {"bf16": torch.int16, "f16": torch.int16, "tf32": torch.int32, "f32": torch.int32, "e4m3": torch.uint8,
           "e5m2": torch.uint8, "i8": torch.uint8, "u8": torch.uint8, "i32": torch.int32}


def small_float_bits(value, exponent_bits, fraction_bits):
    """Exact encoding of an integer; only for values the format holds."""
    if value == 0:
        return 0
    magnitude, exponent = abs(value), abs(value).bit_length() - 1
    fraction = (magnitude << fraction_bits >> exponent) - (1 << fraction_bits) if fraction_bits >= exponent else None
    assert fraction is not None and (fraction + (1 << fraction_bits)) << exponent >> fraction_bits == magnitude, value
    bias = (1 << (exponent_bits - 1)) - 1
    sign = (1 << (exponent_bits + fraction_bits)) if value < 0 else 0
    return sign | (exponent + bias) << fraction_bits | fraction


FORMATS = {"bf16": (8, 7), "f16": (5, 10), "tf32": (8, 23), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2)}
_luts = {}


def encode(values, dtype):
    """int64 tensor of small integers -> tensor of the element's bit patterns."""
    if dtype not in FORMATS:
        return (values & (0xFF if STORAGE[dtype] == torch.uint8 else 0xFFFFFFFF)).to(torch.int64).to(
            torch.uint8) if STORAGE[dtype] == torch.uint8 else values.to(STORAGE[dtype])
    if dtype not in _luts:
        limit = RANGE[dtype]
        patterns = [small_float_bits(v, *FORMATS[dtype]) for v in range(-limit, limit + 1)]
        width = {torch.uint8: 8, torch.int16: 16, torch.int32: 32}[STORAGE[dtype]]
        if width > 8:
            patterns = [p - (1 << width) if p >> (width - 1) else p for p in patterns]
        _luts[dtype] = torch.tensor(patterns, dtype=STORAGE[dtype])
    return _luts[dtype][values + RANGE[dtype]]


def integers(generator, shape, dtype, limit=None):
    limit = min(limit or RANGE[dtype], RANGE[dtype])
    low = 0 if dtype in UNSIGNED else -limit
    return torch.randint(low, limit + 1, shape, generator=generator)


def one_hot(rows, cols):
    """Row i has a single 1 at column i mod cols."""
    m = torch.zeros((rows, cols), dtype=torch.int64)
    m[torch.arange(rows), torch.arange(rows) % cols] = 1
    return m


def registers(matrix, fragment, dtype):
    """The matrix as each thread's 32-bit registers: int32 [threads, registers]."""
    at = table(fragment["at"]).reshape(fragment["threads"], fragment["values"], 2)
    patterns = encode(matrix[at[..., 0], at[..., 1]], dtype)
    return patterns.contiguous().view(torch.int32).reshape(fragment["threads"], -1)


def accumulator_values(out, fragment, dtype):
    """int32 [threads, registers] -> the values as int64 and the coordinates they belong to."""
    view = {"f32": torch.float32, "f16": torch.float16, "i32": torch.int32}[dtype]
    values = out.cpu().contiguous().reshape(fragment["threads"], -1).view(view).reshape(fragment["threads"], fragment["values"])
    at = table(fragment["at"]).reshape(fragment["threads"], fragment["values"], 2)
    return values.to(torch.float64), at


def compare_product(instruction, variant, out, fragment, dtype, expected):
    values, at = accumulator_values(out, fragment, dtype)
    wanted = expected[at[..., 0], at[..., 1]].to(torch.float64)
    wrong = (values != wanted).nonzero()
    first = ""
    if wrong.numel():
        t, v = wrong[0].tolist()
        first = (f"thread {t} value {v} = element ({at[t, v, 0].item()}, {at[t, v, 1].item()}): got {values[t, v].item()}, "
                 f"expected {wanted[t, v].item()}")
    return row(instruction, variant, wanted.numel(), wrong.shape[0], first)


# ---------------------------------------------------------------------------------------------------------------------
# mma.sync

def vector(first, count):
    return "{" + ",".join(f"%{first + i}" for i in range(count)) + "}"


def mma_source(case, entry):
    a, b, c = case["registers"]
    letter, read, write = ("f", "__uint_as_float", "__float_as_uint") if case["c"] == "f32" else ("r", "", "")
    ctype = "float" if case["c"] == "f32" else "unsigned"
    operands = f"{vector(0, c)}, {vector(c, a)}, {vector(c + a, b)}, {vector(0, c)}"
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(c))
    inputs = ", ".join([f'"r"(a[{i}])' for i in range(a)] + [f'"r"(b[{i}])' for i in range(b)])
    return f"""
extern "C" __global__ void {entry}(const unsigned* A, const unsigned* B, const unsigned* C, unsigned* D) {{
  unsigned t = threadIdx.x, a[{a}], b[{b}];
  {ctype} d[{c}];
  for (int i = 0; i < {a}; ++i) a[i] = A[t * {a} + i];
  for (int i = 0; i < {b}; ++i) b[i] = B[t * {b} + i];
  for (int i = 0; i < {c}; ++i) d[i] = {read}(C[t * {c} + i]);
  asm volatile("{case['ptx']} {operands};" : {outputs} : {inputs});
  for (int i = 0; i < {c}; ++i) D[t * {c} + i] = {write}(d[i]);
}}
"""


def mma(cases, tool):
    generator = torch.Generator().manual_seed(3)
    listed = cases["mma"]
    source = "".join(mma_source(c, f"mma_{i}") for i, c in enumerate(listed))
    for i, case in enumerate(listed):
        kernel = tw.compile(source=source, entry=f"mma_{i}", name="mma.cu")
        m, k, n = case["a_map"]["rows"], case["a_map"]["cols"], case["b_map"]["cols"]
        acc = case["c"]
        payloads = [(integers(generator, (m, k), case["a"], 3), integers(generator, (k, n), case["b"], 3)),
                    (one_hot(m, k), integers(generator, (k, n), case["b"])),
                    (integers(generator, (m, k), case["a"]), one_hot(n, k).T.contiguous())]
        checked = differences = 0
        first = ""
        for a, b in payloads:
            c = integers(generator, (m, n), acc, 50)
            d = torch.zeros(32 * case["registers"][2], dtype=torch.int32, device=DEVICE)
            args = [registers(a, case["a_map"], case["a"]).to(DEVICE), registers(b, case["b_map"], case["b"]).to(DEVICE),
                    registers(c, case["c_map"], acc).to(DEVICE), d]
            kernel.launch(grid=1, block=32, args=args)
            torch.cuda.synchronize()
            r = compare_product(case["ptx"], "", d, case["c_map"], acc, a @ b + c)
            checked, differences, first = checked + r["checked"], differences + r["differences"], first or r.get("first", "")
        yield row("mma.sync", case["ptx"], checked, differences, first)
    # The tensor core ignores the low 13 bits of a tf32 operand.
    case = next(c for c in listed if c["a"] == "tf32" and c["a_map"]["cols"] == 8)
    kernel = tw.compile(source=source, entry=f"mma_{listed.index(case)}", name="mma.cu")
    a = registers(integers(generator, (16, 8), "tf32"), case["a_map"], "tf32")
    noisy = a | torch.randint(0, 1 << 13, a.shape, generator=generator, dtype=torch.int32)
    b = registers(one_hot(8, 8), case["b_map"], "tf32").to(DEVICE)
    zero = torch.zeros((32, 4), dtype=torch.int32, device=DEVICE)
    outs = []
    for left in (a, noisy):
        d = torch.zeros(128, dtype=torch.int32, device=DEVICE)
        kernel.launch(grid=1, block=32, args=[left.to(DEVICE), b, zero, d])
        torch.cuda.synchronize()
        outs.append(d.cpu())
    yield compare("mma.sync", "tf32 operand: low 13 bits ignored", outs[1], outs[0])


# ---------------------------------------------------------------------------------------------------------------------
# wgmma

def wgmma_source(variant, entry):
    n = variant["d_registers"]
    is_f32 = variant["d"] == "f32"
    letter, read, write, ctype = ("f", "__uint_as_float", "__float_as_uint", "float") if is_f32 else ("r", "", "", "unsigned")
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(n))
    inputs = ", ".join(f'"r"(a[{i}])' for i in range(4)) if variant["a_in_registers"] else '"l"(a_desc + (base >> 4))'
    return f"""
extern "C" __global__ void __launch_bounds__(128, 1)
{entry}(const u32* image, u32 bytes, u64 a_desc, u64 b_desc, const u32* A, const u32* C, u32 scale, u32* D) {{
  extern __shared__ unsigned char raw[];
  const u32 base = (smem_addr(raw) + 1023u) & ~1023u, t = threadIdx.x;
  for (u32 i = t * 4; i < bytes; i += 512) asm volatile("st.shared.u32 [%0], %1;" :: "r"(base + i), "r"(image[i / 4]) : "memory");
  u32 a[4];
  for (int i = 0; i < 4; ++i) a[i] = A[t * 4 + i];
  {ctype} d[{n}];
  #pragma unroll
  for (int i = 0; i < {n}; ++i) d[i] = {read}(C[t * {n} + i]);
  fence_proxy_async();
  __syncthreads();
  wgmma_fence();
  asm volatile("{variant['statement']}" : {outputs} : {inputs}, "l"(b_desc + (base >> 4)), "r"(scale));
  wgmma_commit();
  wgmma_wait<0>();
  #pragma unroll
  for (int i = 0; i < {n}; ++i) D[t * {n} + i] = {write}(d[i]);
}}
"""


def place(image, base, tile, matrix, dtype):
    """Writes the tile's elements at their addresses."""
    patterns = encode(matrix, dtype)
    size = patterns.element_size()
    flat = image[base:base + tile["bytes"]].view(patterns.dtype)
    flat[table(tile["addresses"]) // size] = patterns.reshape(-1)


def wgmma(cases, tool, shard, shards):
    w = cases["wgmma"]
    generator = torch.Generator().manual_seed(100 + shard)
    mine = [v for v in range(len(w["variants"])) if v % shards == shard]
    header = '#include "tw_device.cuh"\nusing namespace tw;\n'
    groups = [mine[i:i + 6] for i in range(0, len(mine), 6)]
    sources = {v: header + "".join(wgmma_source(w["variants"][u], f"wgmma_{u}") for u in g) for g in groups for v in g}
    tw.compile_many([dict(source=sources[g[0]], entry=f"wgmma_{g[0]}", name="wgmma.cu") for g in groups], workers=6)
    kernels = {}
    totals = {}
    for run in w["runs"]:
        v = run["variant"]
        if v not in sources:
            continue
        if v not in kernels:
            kernels[v] = tw.compile(source=sources[v], entry=f"wgmma_{v}", name="wgmma.cu")
        variant = w["variants"][v]
        n, k, k0 = variant["n"], variant["k"], run["k0"]
        b_tile = w["tiles"][run["b_tile"]]
        a_tile = None if variant["a_in_registers"] else w["tiles"][run["a_tile"]]
        acc, acc_map = variant["d"], w["accumulators"][str(n)]
        end = run["b_base"] + b_tile["bytes"]
        label = (variant["ptx"], "A registers" if a_tile is None else f"A {a_tile['major']}-major {a_tile['swizzle']}",
                 f"B {b_tile['major']}-major {b_tile['swizzle']}")
        total = totals.setdefault(label, [0, 0, ""])
        for payload in range(3):
            image = torch.full(((end + 3) // 4 * 4,), 0x5A, dtype=torch.uint8)
            if payload == 0:
                a_full = integers(generator, (64 if a_tile is None else a_tile["mn"], k if a_tile is None else a_tile["k"]), variant["a"], 3)
                b_full = integers(generator, (b_tile["mn"], b_tile["k"]), variant["b"], 3)
            elif payload == 1:  # D shows B element by element
                a_full = one_hot(64, k) if a_tile is None else torch.zeros((a_tile["mn"], a_tile["k"]), dtype=torch.int64)
                if a_tile is not None:
                    a_full[run["a_mn0"]:run["a_mn0"] + 64, k0:k0 + k] = one_hot(64, k)
                b_full = integers(generator, (b_tile["mn"], b_tile["k"]), variant["b"])
            else:  # D shows A element by element
                a_full = integers(generator, (64 if a_tile is None else a_tile["mn"], k if a_tile is None else a_tile["k"]), variant["a"])
                b_full = torch.zeros((b_tile["mn"], b_tile["k"]), dtype=torch.int64)
                b_full[run["b_mn0"]:run["b_mn0"] + n, k0:k0 + k] = one_hot(n, k)
            a = a_full if a_tile is None else a_full[run["a_mn0"]:run["a_mn0"] + 64, k0:k0 + k]
            b = b_full[run["b_mn0"]:run["b_mn0"] + n, k0:k0 + k]
            if a_tile is not None:
                place(image, 0, a_tile, a_full, variant["a"])
            place(image, run["b_base"], b_tile, b_full, variant["b"])
            c = integers(generator, (64, n), acc, 50)
            scale = 1 if payload == 0 else 0
            a_regs = registers(a, w["a_registers"][variant["a"]], variant["a"]) if a_tile is None else torch.zeros((128, 4), dtype=torch.int32)
            d = torch.zeros(128 * variant["d_registers"], dtype=torch.int32, device=DEVICE)
            args = [image.to(DEVICE), tw.u32(image.numel()), tw.u64(run.get("a_descriptor", 0)), tw.u64(run["b_descriptor"]),
                    a_regs.to(DEVICE), registers(c, acc_map, acc).to(DEVICE), tw.u32(scale), d]
            kernels[v].launch(grid=1, block=128, args=args, smem=96 * 1024)
            torch.cuda.synchronize()
            r = compare_product("wgmma", "", d, acc_map, acc, a @ b.T + scale * c)
            total[0] += r["checked"]
            total[1] += r["differences"]
            total[2] = total[2] or (f"k0 {k0}, payload {payload}: " + r["first"] if r["differences"] else "")
    for (ptx, a, b), (checked, differences, first) in totals.items():
        yield row("wgmma.mma_async", f"{ptx}, {a}, {b}", checked, differences, first)


# ---------------------------------------------------------------------------------------------------------------------
# ldmatrix, stmatrix

def matrix_source(case, entry):
    count = case["count"]
    regs = ", ".join(f'"=r"(r[{i}])' if not case["store"] else f'"r"(r[{i}])' for i in range(count))
    if case["store"]:
        body = f'asm volatile("{case["ptx"]} [%0], {vector(1, count)};" :: "r"(row), {regs} : "memory");'
    else:
        body = f'asm volatile("{case["ptx"]} {vector(0, count)}, [%{count}];" : {regs} : "r"(row) : "memory");'
    return f"""
extern "C" __global__ void {entry}(const unsigned* image, const unsigned* rows, const unsigned* in, unsigned* out, unsigned* after) {{
  __shared__ __align__(1024) unsigned buffer[1024];
  unsigned t = threadIdx.x, r[{count}];
  for (unsigned i = t; i < 1024; i += 32) buffer[i] = image[i];
  for (int i = 0; i < {count}; ++i) r[i] = in[t * {count} + i];
  __syncwarp();
  const unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(buffer)) + rows[t];
  {body}
  __syncwarp();
  for (int i = 0; i < {count}; ++i) out[t * {count} + i] = r[i];
  for (unsigned i = t; i < 1024; i += 32) after[i] = buffer[i];
}}
"""


def matrix_moves(cases, tool):
    generator = torch.Generator().manual_seed(4)
    listed = cases["matrix_moves"]
    source = "".join(matrix_source(c, f"move_{i}") for i, c in enumerate(listed))
    for index, case in enumerate(listed):
        kernel = tw.compile(source=source, entry=f"move_{index}", name="moves.cu")
        count, fragment = case["count"], case["map"]
        image = torch.arange(2048, dtype=torch.int32).to(torch.int16)  # distinct 16-bit integers
        slots = torch.randperm(256, generator=generator)[:32]          # a distinct 16-byte row for every lane
        rows = (slots * 16).to(torch.int32)
        values = torch.arange(5000, 5000 + 32 * 2 * count, dtype=torch.int32).to(torch.int16).reshape(32, 2 * count)
        out = torch.zeros(32 * count, dtype=torch.int32, device=DEVICE)
        after = torch.zeros(1024, dtype=torch.int32, device=DEVICE)
        kernel.launch(grid=1, block=32, args=[image.view(torch.int32).to(DEVICE), rows.to(DEVICE),
                                              values.view(torch.int32).contiguous().to(DEVICE), out, after])
        torch.cuda.synchronize()
        # Element (matrix, row, col) lies at the address that the lane named for (matrix, row) gives, plus 2 * col.
        lane_of = {tuple(r): lane for lane, r in enumerate(case["row_of_lane"]) if r}
        at = table(fragment["at"]).reshape(32, 2 * count, 2)
        element = torch.zeros((32, 2 * count), dtype=torch.int64)
        for t in range(32):
            for v in range(2 * count):
                r, c = at[t, v].tolist()
                element[t, v] = int(slots[lane_of[(r // 8, r % 8)]]) * 8 + c
        name = "stmatrix" if case["store"] else "ldmatrix"
        if case["store"]:
            expected = image.clone()
            expected[element.reshape(-1)] = values.reshape(-1)
            yield compare(name, case["ptx"], after.cpu().view(torch.int16), expected)
        else:
            yield compare(name, case["ptx"], out.cpu().view(torch.int16), image[element].reshape(-1))


# ---------------------------------------------------------------------------------------------------------------------
# Shuffles, votes, barriers

def shuffle(cases, tool):
    kernel = fixed("probe_shuffle")
    payload = 7919 * torch.arange(32) + 13
    for case in cases["shuffles"]:
        out = torch.zeros(32 * 32 * 2, dtype=torch.int32, device=DEVICE)
        kernel.launch(grid=1, block=32, args=[tw.u32(["up", "down", "bfly", "idx"].index(case["mode"])), tw.u32(case["c"]), out])
        torch.cuda.synchronize()
        got = out.cpu().reshape(-1, 2).to(torch.int64)
        expected = torch.stack([payload[torch.tensor(case["source"])], torch.tensor(case["in_range"])], dim=1)
        yield compare("shfl.sync", f"{case['mode']}, width {case['width']}", got, expected)


def barriers(cases, tool):
    out = torch.zeros(512, dtype=torch.int32, device=DEVICE)
    fixed("probe_named_barriers").launch(grid=1, block=64, args=[out])
    torch.cuda.synchronize()
    expected = torch.tensor([1000 * i + 31 - lane for i in range(16) for lane in range(32)])
    yield compare("bar.sync / bar.arrive", "ids 0 to 15, 64 threads", out.cpu().to(torch.int64), expected)
    out = torch.zeros(96, dtype=torch.int32, device=DEVICE)
    fixed("probe_warp").launch(grid=1, block=32, args=[out])
    torch.cuda.synchronize()
    got = out.cpu().to(torch.int64)
    yield compare("elect.sync", "one lane, the same one twice", torch.cat([got[:32].sum().reshape(1), got[64:]]),
                  torch.ones(33, dtype=torch.int64))
    ballot = sum(1 << lane for lane in range(32) if lane % 3 == 0)
    yield compare("vote.sync", "ballot", got[32:64] & 0xFFFFFFFF, torch.full((32,), ballot))


def mbarrier(cases, tool):
    listed = cases["mbarriers"]
    stride = max(len(c["operations"]) for c in listed)
    flat = torch.zeros((len(listed), stride, 2), dtype=torch.int32)
    expected = torch.full((len(listed), stride, 2), -1, dtype=torch.int32)
    for i, c in enumerate(listed):
        n = len(c["operations"])
        flat[i, :n] = torch.tensor(c["operations"], dtype=torch.int32)
        expected[i, :n] = torch.tensor(c["expected"], dtype=torch.int32)
    out = torch.full((len(listed), stride, 2), -1, dtype=torch.int32, device=DEVICE)
    counts = torch.tensor([c["count"] for c in listed], dtype=torch.int32, device=DEVICE)
    lengths = torch.tensor([len(c["operations"]) for c in listed], dtype=torch.int32, device=DEVICE)
    fixed("probe_mbarrier").launch(grid=len(listed), block=1, args=[counts, lengths, flat.to(DEVICE), out, tw.u32(stride)])
    torch.cuda.synchronize()
    yield compare("mbarrier", "init, arrive, arrive.expect_tx, expect_tx, complete_tx, test_wait.parity, inval", out, expected,
                  lambda i: f"history {i // (2 * stride)} step {i // 2 % stride} parity {i % 2}")
    source = torch.arange(3000, 3128, dtype=torch.int32, device=DEVICE)
    out = torch.zeros((128, 4), dtype=torch.int32, device=DEVICE)
    fixed("probe_cp_async_mbarrier").launch(grid=1, block=128, args=[source, out])
    torch.cuda.synchronize()
    threads = torch.arange(128)
    expected = torch.stack([torch.ones(128, dtype=torch.int64), 3000 + (threads ^ 1), torch.zeros(128, dtype=torch.int64),
                            torch.ones(128, dtype=torch.int64)], dim=1)
    yield compare("cp.async.mbarrier.arrive", "plain is neutral, .noinc counts", out.cpu().to(torch.int64), expected)


# ---------------------------------------------------------------------------------------------------------------------
# TMA

_driver = None


def tensor_map(case, address):
    """cuTensorMapEncodeTiled, for the element strides that harness.tensor_map does not take."""
    global _driver
    if _driver is None:
        _driver = ctypes.CDLL("libcuda.so.1")
    made = tw.TensorMap(None)
    rank = case["rank"]
    u64s, u32s = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*case["strides"][1:])
    code = _driver.cuTensorMapEncodeTiled(
        ctypes.c_void_p(made.address), ctypes.c_int(case["driver_type"]), ctypes.c_uint32(rank), ctypes.c_void_p(address),
        u64s(*case["dims"]), strides, u32s(*case["box"]), u32s(*case["element_strides"]), ctypes.c_int(0),
        ctypes.c_int({0: 0, 32: 1, 64: 2, 128: 3}[case["swizzle"]]), ctypes.c_int(0), ctypes.c_int(1 if case["nan"] else 0))
    if code:
        raise RuntimeError(f"cuTensorMapEncodeTiled: error {code} for {case['what']} {case['type']} swizzle {case['swizzle']}")
    return made


def tensor_bytes(case):
    if case["rank"] == 1:
        return case["dims"][0] * case["element_bytes"]
    return case["strides"][-1] * case["dims"][-1]


def label(case):
    return f"{case['type']}, rank {case['rank']}, swizzle {case['swizzle']}, {case['what']}"


def coordinates(case):
    return [tw.i32(c) for c in (case["start"] + [0] * 5)[:5]]


def element_bytes_of(indices, size):
    """Byte offsets of elements -> offsets of each of their bytes."""
    return (indices.reshape(-1, 1) + torch.arange(size)).reshape(-1)


def payload_bytes(case, count, generator):
    """Distinct-looking patterns that are no NaN for float types, so that nothing in the path may rewrite them."""
    return torch.randint(0, 120, (count,), generator=generator, dtype=torch.int64).to(torch.uint8)


def expected_load(case, tensor, region):
    size = case["element_bytes"]
    image = torch.full((region,), POISON, dtype=torch.uint8)
    addresses, offsets = torch.tensor(case["addresses"]), torch.tensor(case["offsets"])
    inside = offsets >= 0
    image[element_bytes_of(addresses[inside], size)] = tensor[element_bytes_of(offsets[inside], size)]
    fill = torch.tensor(list(int(case["fill_bits"]).to_bytes(size, "little")), dtype=torch.uint8)
    outside = addresses[~inside]
    image[element_bytes_of(outside, size)] = fill.repeat(outside.numel())
    return image


def tma_load(cases, tool):
    generator = torch.Generator().manual_seed(5)
    kernel = fixed("probe_tma_load")
    for case in cases["tma"]:
        if not case["legal"]:
            continue
        try:
            tensor = payload_bytes(case, tensor_bytes(case), generator)
            on_device = tensor.to(DEVICE)
            region = (case["footprint"] + 1023) // 1024 * 1024 + 1024
            out = torch.zeros(region // 4 + 1, dtype=torch.int32, device=DEVICE)
            kernel.launch(grid=1, block=128, smem=96 * 1024,
                          args=[tensor_map(case, on_device.data_ptr()), tw.u32(case["rank"])] + coordinates(case) +
                               [tw.u32(case["box_bytes"]), tw.u32(region), out])
            torch.cuda.synchronize()
            got = out.cpu()
            if got[-1].item() != 1:
                yield row("tma.load", label(case), 1, 1, f"the barrier did not see {case['box_bytes']} bytes")
                continue
            yield compare("tma.load", label(case), got[:-1].view(torch.uint8), expected_load(case, tensor, region))
        except RuntimeError as e:
            if "cuTensorMapEncodeTiled" not in str(e):
                raise
            yield row("tma.load", label(case), 1, 1, str(e))


def tma_illegal(cases, tool, index):
    """A coordinate the table calls illegal must trap; the context is lost, so one case per process."""
    case = [c for c in cases["tma"] if not c["legal"]][index]
    tensor = payload_bytes(case, tensor_bytes(case), torch.Generator().manual_seed(5)).to(DEVICE)
    region = (case["footprint"] + 1023) // 1024 * 1024 + 1024
    out = torch.zeros(region // 4 + 1, dtype=torch.int32, device=DEVICE)
    try:
        fixed("probe_tma_load").launch(grid=1, block=128, smem=96 * 1024,
                                       args=[tensor_map(case, tensor.data_ptr()), tw.u32(case["rank"])] + coordinates(case) +
                                            [tw.u32(case["box_bytes"]), tw.u32(region), out])
        torch.cuda.synchronize()
        got = out.cpu()
        same = compare("", "", got[:-1].view(torch.uint8), expected_load(case, tensor.cpu(), region))
        yield row("tma.load", f"{label(case)}: illegal, must trap", 1, 1,
                  f"no trap; wait {got[-1].item()}, {same['differences']} of {same['checked']} bytes differ from an unaligned load")
    except RuntimeError as trap:
        yield row("tma.load", f"{label(case)}: illegal, must trap", 1, 0 if "illegal instruction" in str(trap) else 1, str(trap)[:200])


def tma_store(cases, tool):
    generator = torch.Generator().manual_seed(6)
    kernel = fixed("probe_tma_store")
    for case in cases["tma"]:
        if case["nan"] or not case["legal"]:
            continue
        size = case["element_bytes"]
        region = (case["footprint"] + 1023) // 1024 * 1024
        image = torch.randint(0, 256, (region,), generator=generator, dtype=torch.int64).to(torch.uint8)
        tensor = torch.full((tensor_bytes(case),), POISON, dtype=torch.uint8)
        on_device = tensor.to(DEVICE)
        try:
            made = tensor_map(case, on_device.data_ptr())
        except RuntimeError as e:
            yield row("tma.store", label(case), 1, 1, str(e))
            continue
        kernel.launch(grid=1, block=128, smem=96 * 1024,
                      args=[made, tw.u32(case["rank"]), tw.u32(0)] + coordinates(case) + [tw.u32(region), image.to(DEVICE)])
        torch.cuda.synchronize()
        addresses, offsets = torch.tensor(case["addresses"]), torch.tensor(case["store_offsets"])
        inside = offsets >= 0
        expected = tensor.clone()
        expected[element_bytes_of(offsets[inside], size)] = image[element_bytes_of(addresses[inside], size)]
        yield compare("tma.store", label(case), on_device, expected)
        if case["type"] not in ("f32", "bf16", "f16", "i32") or "element stride" in case["what"]:
            continue
        # Reduce-add of integers onto integers.
        storage = STORAGE[case["type"]]
        held = integers(generator, (tensor.numel() // size,), case["type"], 60)
        added = integers(generator, (region // size,), case["type"], 60)
        on_device = as_bytes(encode(held, case["type"])).to(DEVICE)
        kernel.launch(grid=1, block=128, smem=96 * 1024,
                      args=[tensor_map(case, on_device.data_ptr()), tw.u32(case["rank"]), tw.u32(1)] + coordinates(case) +
                           [tw.u32(region), as_bytes(encode(added, case["type"])).to(DEVICE)])
        torch.cuda.synchronize()
        total = held.clone()
        total[offsets[inside] // size] += added[addresses[inside] // size]
        yield compare("tma.reduce_add", label(case), on_device.cpu().view(storage), encode(total, case["type"]))


def multicast(cases, tool):
    generator = torch.Generator().manual_seed(7)
    kernel = fixed("probe_tma_multicast")
    for case in cases["tma"]:
        if case["rank"] != 2 or case["what"] not in ("inside", "corner") or case["type"] not in ("bf16", "f32"):
            continue
        tensor = payload_bytes(case, tensor_bytes(case), generator)
        on_device = tensor.to(DEVICE)
        region = (case["footprint"] + 1023) // 1024 * 1024 + 1024
        poison = torch.full((region,), POISON, dtype=torch.uint8)
        for issuer, mask in ((0, 3), (1, 3), (0, 2), (1, 1)):
            out = torch.zeros(2 * (region // 4 + 1), dtype=torch.int32, device=DEVICE)
            kernel.launch(grid=2, block=128, smem=96 * 1024, cluster=(2, 1, 1),
                          args=[tensor_map(case, on_device.data_ptr()), tw.u32(0), tw.u32(issuer), tw.u32(mask)] +
                               coordinates(case)[:2] + [tw.u32(case["box_bytes"]), tw.u32(region), out])
            torch.cuda.synchronize()
            got = out.cpu().reshape(2, -1)
            image = expected_load(case, tensor, region)
            expected = torch.stack([image if mask >> r & 1 else poison for r in range(2)])
            yield compare("tma.load.multicast", f"{label(case)}, from rank {issuer} to mask {mask}",
                          torch.cat([got[:, :-1].contiguous().view(torch.uint8).to(torch.int32), got[:, -1:]], dim=1),
                          torch.cat([expected.to(torch.int32), torch.ones((2, 1), dtype=torch.int32)], dim=1))
    # Each rank fetches one half of the rows and both get the whole tile.
    half = 8
    case = {"type": "bf16", "driver_type": 9, "element_bytes": 2, "rank": 2, "dims": [64, 16], "strides": [0, 128],
            "box": [64, half], "element_strides": [1, 1], "swizzle": 128, "nan": False, "what": "halves"}
    tensor = payload_bytes(case, 2048, generator)
    on_device = tensor.to(DEVICE)
    out = torch.zeros(2 * (2048 // 4 + 1), dtype=torch.int32, device=DEVICE)
    kernel.launch(grid=2, block=128, smem=96 * 1024, cluster=(2, 1, 1),
                  args=[tensor_map(case, on_device.data_ptr()), tw.u32(1), tw.u32(0), tw.u32(3), tw.i32(0), tw.i32(0),
                        tw.u32(1024), tw.u32(2048), out])
    torch.cuda.synchronize()
    got = out.cpu().reshape(2, -1)
    whole = next(t for t in cases["wgmma"]["tiles"] if t["type"] == "bf16" and t["major"] == "K" and t["swizzle"] == "128B" and t["k"] == 64)
    addresses = torch.tensor(whole["addresses"])[:16 * 64]  # the same 128-byte rows as wgmma's K-major tile
    image = torch.zeros(2048, dtype=torch.uint8)
    image[element_bytes_of(addresses, 2)] = tensor
    yield compare("tma.load.multicast", "two halves from two ranks make a wgmma K-major tile",
                  got[:, :-1].contiguous().view(torch.uint8), image.repeat(2, 1))


# ---------------------------------------------------------------------------------------------------------------------
# cp.async, bulk copies, vector access

def copies(cases, tool):
    generator = torch.Generator().manual_seed(8)
    source = torch.randint(1, 256, (4096,), generator=generator, dtype=torch.int64).to(torch.uint8)
    out = torch.zeros(2048, dtype=torch.int32, device=DEVICE)
    fixed("probe_cp_async").launch(grid=1, block=128, args=[source.to(DEVICE), out])
    torch.cuda.synchronize()
    got = out.cpu().view(torch.uint8)
    for index, (size, cache) in enumerate(((4, "ca"), (8, "ca"), (16, "ca"), (16, "cg"))):
        expected = source[:128 * size].clone().reshape(128, size)
        for t in range(128):
            expected[t, t % (size + 1):] = 0
        yield compare("cp.async", f"{cache} {size} bytes, src-size 0 to {size}", got[index * 2048:index * 2048 + 128 * size], expected)

    out = torch.zeros(32 * 66, dtype=torch.uint8, device=DEVICE)
    fixed("probe_vectors").launch(grid=1, block=32, args=[source.to(DEVICE), out])
    torch.cuda.synchronize()
    at = 0
    for width, name in ((4, "u32"), (8, "v2.u32"), (16, "v4.u32"), (2, "u16"), (4, "v2.u16"), (8, "v4.u16"), (8, "u64"), (16, "v2.u64")):
        yield compare("ld / st global and shared", name, out[at:at + 32 * width], source[:32 * width])
        at += 32 * width

    kernel = fixed("probe_bulk")
    for size in (16, 48, 1024, 8192):
        data = torch.randint(-1000, 1000, (2, size // 4), generator=generator, dtype=torch.int32)
        base = torch.randint(-1000, 1000, (size // 4,), generator=generator, dtype=torch.int32)
        out = torch.zeros((2, size // 4), dtype=torch.int32, device=DEVICE)
        sums, flags = base.to(DEVICE), torch.zeros(4, dtype=torch.int32, device=DEVICE)
        kernel.launch(grid=2, block=128, smem=96 * 1024, cluster=(2, 1, 1), args=[data.to(DEVICE), out, sums, tw.u32(size), flags])
        torch.cuda.synchronize()
        yield compare("bulk.load, bulk.to_cluster, bulk.store", f"{size} bytes", out, data.flip(0))
        yield compare("bulk.reduce_add", f"s32, {size} bytes", sums, base + data[0] + data[1])
        yield compare("mbarrier.arrive.remote, mapa, barrier.cluster", f"waits succeed, {size} bytes", flags, torch.ones(4, dtype=torch.int32))


# ---------------------------------------------------------------------------------------------------------------------
# red

REDUCTIONS = [("f32", 1, "red.global.add.f32", "f"), ("f32", 2, "red.global.add.v2.f32", "f"), ("f32", 4, "red.global.add.v4.f32", "f"),
              ("i32", 1, "red.global.add.s32", "r"), ("f16", 2, "red.global.add.noftz.f16x2", "r"),
              ("bf16", 2, "red.global.add.noftz.bf16x2", "r"), ("f16", 4, "red.global.add.noftz.v2.f16x2", "r"),
              ("bf16", 8, "red.global.add.noftz.v4.bf16x2", "r"), ("f32", 1, "red.shared.add.f32", "f"),
              ("f16", 2, "red.shared.add.noftz.f16x2", "r"), ("bf16", 2, "red.shared.add.noftz.bf16x2", "r"),
              ("f32", 1, "atom.global.add.f32", "f"), ("i32", 1, "atom.shared.add.s32", "r")]


def reduce_source(index, ptx, letter, words):
    read = "__uint_as_float" if letter == "f" else ""
    ctype = "float" if letter == "f" else "unsigned"
    shared, returns = ".shared." in ptx, ptx.startswith("atom")
    first = 1 if returns else 0
    value = f"%{first + 1}" if words == 1 else vector(first + 1, words)
    operand = f'"{"r" if shared else "l"}"({"static_cast<unsigned>(__cvta_generic_to_shared(buffer + slot))" if shared else "target + slot"})'
    inputs = ", ".join([operand] + [f'"{letter}"(v[{i}])' for i in range(words)])
    text = f"{ptx} " + ("%0, " if returns else "") + f"[%{first}], {value};"
    outputs = f'"={letter}"(old)' if returns else ""
    return f"""
extern "C" __global__ void red_{index}(const unsigned* source, unsigned* target, unsigned slots) {{
  __shared__ __align__(16) unsigned buffer[256];
  for (unsigned i = threadIdx.x; i < slots * {words}; i += blockDim.x) buffer[i] = target[i];
  __syncthreads();
  {ctype} v[{words}], old{{}};
  for (int i = 0; i < {words}; ++i) v[i] = {read}(source[threadIdx.x * {words} + i]);
  const unsigned slot = threadIdx.x % slots * {words};
  asm volatile("{text}" : {outputs} : {inputs} : "memory");
  __syncthreads();
  {"for (unsigned i = threadIdx.x; i < slots * " + str(words) + "; i += blockDim.x) target[i] = buffer[i];" if shared else ""}
}}
"""


def reduce(cases, tool):
    generator = torch.Generator().manual_seed(9)
    words = [count * {"f32": 4, "i32": 4, "f16": 2, "bf16": 2}[t] // 4 for t, count, _, _ in REDUCTIONS]
    source = "".join(reduce_source(i, ptx, letter, words[i]) for i, (_, _, ptx, letter) in enumerate(REDUCTIONS))
    slots, threads = 16, 128
    for i, (dtype, count, ptx, _) in enumerate(REDUCTIONS):
        kernel = tw.compile(source=source, entry=f"red_{i}", name="red.cu")
        held = integers(generator, (slots, count), dtype, 9)
        added = integers(generator, (threads, count), dtype, 9)
        on_device = encode(held, dtype).to(DEVICE)
        kernel.launch(grid=1, block=threads, args=[encode(added, dtype).to(DEVICE), on_device, tw.u32(slots)])
        torch.cuda.synchronize()
        total = held.clone()
        total.index_add_(0, torch.arange(threads) % slots, added)
        yield compare("atom.add" if ptx.startswith("atom") else "red.add", ptx, on_device, encode(total, dtype))


# ---------------------------------------------------------------------------------------------------------------------
# Conversions

CVT = {  # name: (source type, result type, statement); %0 result, %1 source. x2 forms convert the low half.
    "f32_to_bf16_rn": ("f", "h", "cvt.rn.bf16.f32 %0, %1;"), "f32_to_bf16_rz": ("f", "h", "cvt.rz.bf16.f32 %0, %1;"),
    "f32_to_f16_rn": ("f", "h", "cvt.rn.f16.f32 %0, %1;"), "f32_to_f16_rz": ("f", "h", "cvt.rz.f16.f32 %0, %1;"),
    "f32_to_tf32_rna": ("f", "r", "cvt.rna.tf32.f32 %0, %1;"),
    "f32_to_e4m3": ("f", "h", "{.reg .f32 z; mov.f32 z, 0f00000000; cvt.rn.satfinite.e4m3x2.f32 %0, z, %1;}"),
    "f32_to_e5m2": ("f", "h", "{.reg .f32 z; mov.f32 z, 0f00000000; cvt.rn.satfinite.e5m2x2.f32 %0, z, %1;}"),
    "f16_to_e4m3": ("h", "h", "{.reg .b32 p; mov.b32 p, {%1, %1}; cvt.rn.satfinite.e4m3x2.f16x2 %0, p;}"),
    "f16_to_e5m2": ("h", "h", "{.reg .b32 p; mov.b32 p, {%1, %1}; cvt.rn.satfinite.e5m2x2.f16x2 %0, p;}"),
    "f16_to_f32": ("h", "f", "cvt.f32.f16 %0, %1;"), "bf16_to_f32": ("h", "r", "{.reg .b16 z; mov.b16 z, 0; mov.b32 %0, {z, %1};}"),
    "e4m3_to_f16": ("h", "r", "cvt.rn.f16x2.e4m3x2 %0, %1;"), "e5m2_to_f16": ("h", "r", "cvt.rn.f16x2.e5m2x2 %0, %1;"),
    "f32_to_i32_rz": ("f", "r", "cvt.rzi.s32.f32 %0, %1;"), "f32_to_i32_rn": ("f", "r", "cvt.rni.s32.f32 %0, %1;"),
    "f32_to_u32_rz": ("f", "r", "cvt.rzi.u32.f32 %0, %1;"), "f32_to_i64_rz": ("f", "l", "cvt.rzi.s64.f32 %0, %1;"),
    "f32_to_i8_sat": ("f", "r", "cvt.rni.sat.s8.f32 %0, %1;"), "f32_to_u8_sat": ("f", "r", "cvt.rni.sat.u8.f32 %0, %1;"),
    "i32_to_f32": ("r", "f", "cvt.rn.f32.s32 %0, %1;"), "u32_to_f32": ("r", "f", "cvt.rn.f32.u32 %0, %1;"),
    "i64_to_f32": ("l", "f", "cvt.rn.f32.s64 %0, %1;"), "f64_to_f32": ("d", "f", "cvt.rn.f32.f64 %0, %1;"),
    "f32_to_f64": ("f", "d", "cvt.f64.f32 %0, %1;"),
}
CTYPES = {"f": "float", "h": "unsigned short", "r": "unsigned", "l": "unsigned long long", "d": "double"}
BITS_OF = {"f": 32, "h": 16, "r": 32, "l": 64, "d": 64}


def convert_source(name):
    source, result, text = CVT[name]
    return f"""
extern "C" __global__ void {name}(const {CTYPES[source]}* in, unsigned long long* out, unsigned n) {{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {CTYPES[result]} r;
  asm volatile("{text}" : "={result}"(r) : "{source}"(in[i]));
  union {{ {CTYPES[result]} value; unsigned long long bits; }} u;
  u.bits = 0;
  u.value = r;
  out[i] = u.bits;
}}
"""


def convert(cases, tool):
    generator = torch.Generator().manual_seed(10)
    source_text = "".join(convert_source(n) for n in CVT)
    # f32: every upper half with low halves at the places where roundings change, and random patterns.
    upper = torch.arange(1 << 16, dtype=torch.int64) << 16
    lows = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1000, 0x0FFF, 0x1001, 0x2000, 0x3000]
    f32 = torch.cat([upper + low for low in lows] + [torch.randint(0, 1 << 32, (1 << 20,), generator=generator)])
    wide = torch.cat([torch.randint(-(1 << 62), 1 << 62, (1 << 18,), generator=generator) * 2,
                      torch.randint(-(1 << 40), 1 << 40, (1 << 18,), generator=generator)])
    # f64 near the f32 range: sign, exponent 863..1183, random fraction.
    exponent = torch.randint(1023 - 160, 1023 + 160, (1 << 19,), generator=generator) << 52
    f64 = exponent | torch.randint(0, 1 << 52, (1 << 19,), generator=generator)
    f64 = torch.cat([f64, f64 | (-1 << 63), torch.tensor([0, 0x7FF0000000000000, 0x7FF8000000000001, -1])])
    result_bits = {"f32_to_e4m3": 8, "f32_to_e5m2": 8, "f16_to_e4m3": 8, "f16_to_e5m2": 8, "e4m3_to_f16": 16, "e5m2_to_f16": 16,
                   "f32_to_i8_sat": 8, "f32_to_u8_sat": 8}
    for name, (source, result, text) in CVT.items():
        narrow = name.startswith(("e4m3", "e5m2"))
        if narrow:
            data = torch.arange(256).to(torch.int16)
            stdin = torch.arange(256).to(torch.uint8)
        elif source == "h":
            data = torch.arange(1 << 16).to(torch.int32).to(torch.int16)
            stdin = data
        elif BITS_OF[source] == 32:
            data = torch.where(f32 >= 1 << 31, f32 - (1 << 32), f32).to(torch.int32)
            stdin = data
        else:
            data = wide if source == "l" else f64
            stdin = data
        bits = result_bits.get(name, BITS_OF[result])
        kernel = tw.compile(source=source_text, entry=name, name="cvt.cu")
        n = data.numel()
        out = torch.zeros(n, dtype=torch.int64, device=DEVICE)
        kernel.launch(grid=(n + 255) // 256, block=256, args=[data.to(DEVICE), out, tw.u32(n)])
        torch.cuda.synchronize()
        got = out.cpu()
        if bits < 64:
            got = got & ((1 << bits) - 1)
        raw = bytes(as_bytes(stdin).tolist()) if n < 70000 else ctypes.string_at(as_bytes(stdin).data_ptr(), n * stdin.element_size())
        answer = subprocess.run(tool + ["convert", name], input=raw, stdout=subprocess.PIPE, check=True).stdout
        kind = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[bits]
        expected = torch.frombuffer(bytearray(answer), dtype=kind).to(torch.int64)
        if 8 < bits < 64:
            expected = expected & ((1 << bits) - 1)
        mask = (1 << BITS_OF[source]) - 1
        r = compare("cvt", f"{name}: {text}", got, expected, lambda i: f"source {int(data[i]) & mask:#x}")
        yield r


# ---------------------------------------------------------------------------------------------------------------------
# Register redistribution, dependent launch

def registers_family(cases, tool):
    kernel = fixed("probe_setmaxnreg")
    # 24 + 224 <= 2 x what the block was launched with, or the increase would never return.
    if 2 * kernel.registers >= 24 + 224:
        out = torch.zeros(256, dtype=torch.int32, device=DEVICE)
        kernel.launch(grid=1, block=256, args=[out])
        torch.cuda.synchronize()
        yield compare("setmaxnreg", f"dec 24, inc 224, launched with {kernel.registers}", out,
                      torch.tensor([24] * 128 + [224] * 128, dtype=torch.int32))
    else:
        yield row("setmaxnreg", f"launched with {kernel.registers}", 1, 1, "the kernel was not given enough registers to probe with")
    kernel = fixed("probe_grid_dependency")
    out = torch.full((64,), 5, dtype=torch.int32, device=DEVICE)
    for value in (1, 2, 3):
        kernel.launch(grid=1, block=64, args=[out, tw.u32(value)], pdl=True)
    torch.cuda.synchronize()
    yield compare("griddepcontrol", "three dependent launches in order", out, torch.full((64,), ((5 * 2 + 1) * 2 + 2) * 2 + 3, dtype=torch.int32))


# ---------------------------------------------------------------------------------------------------------------------
# The bank model, by the clock

def banks(cases, tool):
    listed = cases["banks"]
    addresses = torch.tensor([c["addresses"] for c in listed], dtype=torch.int32, device=DEVICE)
    widths = torch.tensor([c["bytes"] for c in listed], dtype=torch.int32, device=DEVICE)
    out = torch.zeros(len(listed), dtype=torch.int32, device=DEVICE)
    fixed("probe_banks").launch(grid=1, block=512, smem=96 * 1024, args=[addresses, widths, out, tw.u32(len(listed))])
    torch.cuda.synchronize()
    for case, cycles in zip(listed, out.cpu().tolist()):
        measured = cycles / (16 * 256)
        # The clock also sees the first load's latency and the loop: about a tenth of a wavefront.
        agrees = abs(measured - case["wavefronts"]) <= 0.15 * case["wavefronts"] + 0.2
        yield row("ld.shared wavefronts", f"{case['bytes']} bytes, {case['what']}", 1, 0 if agrees else 1,
                  f"model {case['wavefronts']} wavefronts, measured {measured:.2f} cycles")


def run(family, tool, cases_path, out_path):
    torch.set_num_threads(1)  # the tensors are small, and many families run at once
    with open(cases_path) as f:
        cases = json.load(f)
    if family.startswith("wgmma."):
        rows = wgmma(cases, tool, int(family.split(".")[1]), 4)
    elif family.startswith("tma_illegal."):
        rows = tma_illegal(cases, tool, int(family.split(".")[1]))
    else:
        rows = {"mma": mma, "matrix_moves": matrix_moves, "shuffle": shuffle, "barriers": barriers, "mbarrier": mbarrier,
                "tma_load": tma_load, "tma_store": tma_store, "multicast": multicast, "copies": copies, "reduce": reduce,
                "convert": convert, "registers": registers_family, "banks": banks}[family](cases, tool)
    with open(out_path, "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
            f.flush()
