"""Matrix instructions: mma.sync, wgmma, ldmatrix, stmatrix, and how the tensor cores add. Each family is a function that yields rows."""
import ctypes
import json
import subprocess

import torch

import harness as tw
from probe_common import *  # noqa: F403


# ---------------------------------------------------------------------------------------------------------------------
# mma.sync

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
# How the tensor cores add: random floats, bit for bit

def float_patterns(generator, shape, dtype, low, high):
    """Random signs and fractions, exponent fields from low to high (0: subnormal); no infinity, no NaN."""
    exponent_bits, fraction_bits = FORMATS[dtype]
    if dtype == "tf32":
        fraction_bits = 10
    top = (1 << exponent_bits) - (1 if dtype == "e4m3" else 2)
    exponent = torch.randint(max(0, low), min(top, high) + 1, shape, generator=generator)
    fraction = torch.randint(0, 1 << fraction_bits, shape, generator=generator)
    if dtype == "e4m3":
        fraction = torch.where((exponent == 15) & (fraction == 7), 6, fraction)
    sign = torch.randint(0, 2, shape, generator=generator)
    patterns = sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction
    return patterns << 13 if dtype == "tf32" else patterns


def sprinkle(generator, patterns, dtype, one_in):
    """Replaces one in so many by zero, infinity (where there is one) or NaN, of either sign."""
    exponent_bits, fraction_bits = FORMATS[dtype]
    nan = (1 << (exponent_bits + fraction_bits)) - 1
    infinity = nan if dtype == "e4m3" else ((1 << exponent_bits) - 1) << fraction_bits
    choices = torch.tensor([0, infinity, nan, infinity])
    picked = choices[torch.randint(0, 4, patterns.shape, generator=generator)]
    picked |= torch.randint(0, 2, patterns.shape, generator=generator) << (exponent_bits + fraction_bits)
    return torch.where(torch.randint(0, one_in, patterns.shape, generator=generator) == 0, picked, patterns)


def stored(patterns, dtype):
    kind = STORAGE[dtype]
    bits = 8 * torch.zeros(1, dtype=kind).element_size()
    return patterns.to(kind) if bits == 8 else torch.where(patterns >> (bits - 1) > 0, patterns - (1 << bits), patterns).to(kind)


def sum_operands(generator, kind, a_shape, b_shape, c_shape, a_type, b_type, acc):
    bias = {t: (1 << (FORMATS[t][0] - 1)) - 1 for t in (a_type, b_type, acc)}
    def around(dtype, shape, centre, spread):
        return float_patterns(generator, shape, dtype, centre - spread, centre + spread)
    if kind.startswith("spread"):
        spread = int(kind.split()[1])
        a, b = around(a_type, a_shape, bias[a_type], spread), around(b_type, b_shape, bias[b_type], spread)
        return a, b, around(acc, c_shape, bias[acc], min(2 * spread + 2, bias[acc] - 1))
    if kind == "subnormal":
        lowest = 1 - bias[a_type] + bias[acc]  # exponent field of C that matches A's smallest normal
        return (float_patterns(generator, a_shape, a_type, 0, 2), around(b_type, b_shape, bias[b_type], 3),
                float_patterns(generator, c_shape, acc, max(0, lowest - 4), lowest + 4))
    if kind == "huge":
        top = (1 << FORMATS[a_type][0]) - 2
        return (float_patterns(generator, a_shape, a_type, top - 2, top), around(b_type, b_shape, bias[b_type] + 2, 3),
                float_patterns(generator, c_shape, acc, 2 * bias[acc] - 4, 2 * bias[acc]))
    a, b = around(a_type, a_shape, bias[a_type], 4), around(b_type, b_shape, bias[b_type], 4)
    k = a_shape[-1]
    return (sprinkle(generator, a, a_type, 6 * k) if a_type != "tf32" else a, sprinkle(generator, b, b_type, 6 * k) if b_type != "tf32" else b,
            sprinkle(generator, around(acc, c_shape, bias[acc], 6), acc, 16))


def expected_sums(tool, unit, a_type, b_type, acc, a, b, c):
    """a: [m, k], b: [n, k], c: [m, n] patterns -> D as the table says."""
    m, k = a.shape
    n = b.shape[0]
    records = torch.cat([a[:, None, :].expand(m, n, k), b[None, :, :].expand(m, n, k), c[..., None]], dim=2).reshape(-1)
    records = torch.where(records >= 1 << 31, records - (1 << 32), records).to(torch.int32).contiguous()
    raw = ctypes.string_at(records.data_ptr(), 4 * records.numel())
    answer = subprocess.run(tool + ["sums", unit, a_type, b_type, acc, str(k)], input=raw, stdout=subprocess.PIPE, check=True).stdout
    return torch.frombuffer(bytearray(answer), dtype=torch.int32).to(torch.int64).reshape(m, n) & 0xFFFFFFFF


def register_patterns(patterns, fragment, dtype):
    at = table(fragment["at"]).reshape(fragment["threads"], fragment["values"], 2)
    return stored(patterns[at[..., 0], at[..., 1]], dtype).contiguous().view(torch.int32).reshape(fragment["threads"], -1)


def scattered(out, fragment, acc):
    kind = torch.int32 if acc == "f32" else torch.int16
    at = table(fragment["at"]).reshape(fragment["threads"], fragment["values"], 2)
    values = out.cpu().reshape(fragment["threads"], -1).contiguous().view(kind).reshape(fragment["threads"], fragment["values"])
    d = torch.zeros((fragment["rows"], fragment["cols"]), dtype=torch.int64)
    d[at[..., 0], at[..., 1]] = values.to(torch.int64) & (0xFFFFFFFF if acc == "f32" else 0xFFFF)
    return d


KINDS = ["spread 1", "spread 4", "spread 12", "subnormal", "huge", "special"]


def sums_mma(cases, tool):
    generator = torch.Generator().manual_seed(21)
    listed = cases["mma"]
    source = "".join(mma_source(c, f"mma_{i}") for i, c in enumerate(listed))
    for i, case in enumerate(listed):
        acc = case["c"]
        if acc == "i32":
            continue
        kernel = tw.compile(source=source, entry=f"mma_{i}", name="mma.cu")
        m, k, n = case["a_map"]["rows"], case["a_map"]["cols"], case["b_map"]["cols"]
        for kind in KINDS:
            got, expected, operands = [], [], []
            for _ in range(8):
                a, b, c = sum_operands(generator, kind, (m, k), (n, k), (m, n), case["a"], case["b"], acc)
                d = torch.zeros(32 * case["registers"][2], dtype=torch.int32, device=DEVICE)
                kernel.launch(grid=1, block=32, args=[register_patterns(a, case["a_map"], case["a"]).to(DEVICE),
                                                      register_patterns(b.T.contiguous(), case["b_map"], case["b"]).to(DEVICE),
                                                      register_patterns(c, case["c_map"], acc).to(DEVICE), d])
                torch.cuda.synchronize()
                got.append(scattered(d, case["c_map"], acc))
                expected.append(expected_sums(tool, "mma", case["a"], case["b"], acc, a, b, c))
                operands.append((a, b, c))
            yield compare_sums("mma.sync sums", f"{case['ptx']}, {kind}", got, expected, operands)


def sums_wgmma(cases, tool):
    generator = torch.Generator().manual_seed(22)
    w = cases["wgmma"]
    for v, variant in enumerate(w["variants"]):
        acc = variant["d"]
        if acc == "i32" or variant["n"] != 64 or variant["a_in_registers"] or variant["a_major"] != "K" or variant["b_major"] != "K":
            continue
        run = next(r for r in w["runs"] if r["variant"] == v and r["k0"] == 0)
        a_tile, b_tile, k, fragment = w["tiles"][run["a_tile"]], w["tiles"][run["b_tile"]], variant["k"], w["accumulators"]["64"]
        kernel = tw.compile(source='#include "tw_device.cuh"\nusing namespace tw;\n' + wgmma_source(variant, f"wgmma_{v}"),
                            entry=f"wgmma_{v}", name="wgmma_sum.cu")
        for kind in KINDS:
            a, b, c = sum_operands(generator, kind, (a_tile["mn"], a_tile["k"]), (b_tile["mn"], b_tile["k"]), (64, 64),
                                   variant["a"], variant["b"], acc)
            image = torch.zeros((run["b_base"] + b_tile["bytes"] + 3) // 4 * 4, dtype=torch.uint8)
            for base, tile, patterns, dtype in ((0, a_tile, a, variant["a"]), (run["b_base"], b_tile, b, variant["b"])):
                bits = stored(patterns, dtype).reshape(-1)
                image[base:base + tile["bytes"]].view(bits.dtype)[table(tile["addresses"]) // bits.element_size()] = bits
            a, b = a[run["a_mn0"]:run["a_mn0"] + 64, :k], b[run["b_mn0"]:run["b_mn0"] + 64, :k]
            d = torch.zeros(128 * variant["d_registers"], dtype=torch.int32, device=DEVICE)
            kernel.launch(grid=1, block=128, smem=96 * 1024,
                          args=[image.to(DEVICE), tw.u32(image.numel()), tw.u64(run["a_descriptor"]), tw.u64(run["b_descriptor"]),
                                torch.zeros((128, 4), dtype=torch.int32, device=DEVICE), register_patterns(c, fragment, acc).to(DEVICE),
                                tw.u32(1), d])
            torch.cuda.synchronize()
            yield compare_sums("wgmma sums", f"{variant['ptx']}, {kind}", [scattered(d, fragment, acc)],
                               [expected_sums(tool, "wgmma", variant["a"], variant["b"], acc, a, b, c)], [(a, b, c)])


def compare_sums(instruction, variant, got, expected, operands):
    r = compare(instruction, variant, torch.stack(got), torch.stack(expected))
    if r["differences"]:  # enough to work out what the hardware did
        shown = []
        for g, e, (a, b, c) in zip(got, expected, operands):
            for i, j in (g != e).nonzero()[:3].tolist():
                shown.append({"a": a[i].tolist(), "b": b[j].tolist(), "c": c[i, j].item(), "got": g[i, j].item(), "expected": e[i, j].item()})
        r["first"] = json.dumps(shown[:6])
    return r
