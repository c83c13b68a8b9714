"""Shuffles, barriers, conversions, register redistribution, and the bank model by the clock. Each family is a function that yields rows."""
import ctypes
import subprocess

import torch

import harness as tw
from probe_common import *  # noqa: F403


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
