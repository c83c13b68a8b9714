"""Memory: TMA, bulk copies, cp.async, vector access, reductions into memory. Each family is a function that yields rows."""
import ctypes

import torch

import harness as tw
from probe_common import *  # noqa: F403


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
        if not case["load_legal"]:
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


def illegal_cases(cases):
    """(case, store) for coordinates the table calls illegal; a few of each kind, because each costs a process."""
    loads = [c for c in cases["tma"] if not c["load_legal"]]
    stores = [c for c in cases["tma"] if c["load_legal"] and not c["store_legal"] and not c["nan"] and c["type"] == "bf16" and c["rank"] == 2]
    return [(c, False) for c in loads] + [(c, True) for c in loads[:2] + stores[:6]]


def tma_illegal(cases, tool, index):
    """A coordinate the table calls illegal must trap; the context is lost, so one case per process."""
    listed = illegal_cases(cases)
    if index >= len(listed):
        return
    case, store = listed[index]
    name = "tma.store" if store else "tma.load"
    tensor = payload_bytes(case, tensor_bytes(case), torch.Generator().manual_seed(5)).to(DEVICE)
    region = (case["footprint"] + 1023) // 1024 * 1024 + 1024
    out = torch.zeros(region // 4 + 1, dtype=torch.int32, device=DEVICE)
    start = [tw.u32(case["rank"])] + ([tw.u32(0)] if store else []) + coordinates(case)
    end = [tw.u32(region - 1024), out] if store else [tw.u32(case["box_bytes"]), tw.u32(region), out]
    try:
        fixed("probe_tma_store" if store else "probe_tma_load").launch(
            grid=1, block=128, smem=96 * 1024, args=[tensor_map(case, tensor.data_ptr())] + start + end)
        torch.cuda.synchronize()
        yield row(name, f"{label(case)}: illegal, must trap", 1, 1, "no trap")
    except RuntimeError as trap:
        yield row(name, f"{label(case)}: illegal, must trap", 1, 0 if "illegal instruction" in str(trap) else 1, str(trap)[:200])


def tma_store(cases, tool):
    generator = torch.Generator().manual_seed(6)
    kernel = fixed("probe_tma_store")
    for case in cases["tma"]:
        if case["nan"] or not case["store_legal"]:
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
