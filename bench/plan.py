"""Launches kernels from the plans that `tilewright emit --to plan` prints: a stand-in for the C++ launcher in benches.

    module = plan.load("gemm_sm90.json")          # or several: variants of one name are tried in order
    run = module["gemm"].prepare(A=a, B=b, C=c)   # sizes are taken from the tensors; scalars by name
    run()
"""
import ctypes
import json
import re

import harness as tw

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64", "i32": "int32", "i64": "int64", "i8": "int8", "u8": "uint8", "tf32": "float32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_SCALARS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u32": ctypes.c_uint32}


def value(text, sizes):
    """An integer expression of a plan: Python's spelling, over sizes, min and max."""
    return int(eval(text, {"__builtins__": {}}, {**sizes, "min": min, "max": max}))


class Unfit(Exception):
    """This variant does not serve these arguments."""


class PlannedKernel:
    def __init__(self, plan, kernel, arch="sm_90a"):
        self.plan, self.kernel, self.arch = plan, kernel, arch

    def sizes_of(self, tensors):
        sizes = {}
        for t in self.plan["tensors"]:
            given = tensors[t["name"]]
            if str(given.dtype).removeprefix("torch.") != DTYPES.get(t["dtype"], t["dtype"]):
                raise Unfit(f"{t['name']} is {given.dtype}, {t['dtype']} is expected")
            if len(given.shape) != len(t["dims"]):
                raise Unfit(f"{t['name']} has {len(given.shape)} dimensions, {len(t['dims'])} are expected")
            for text, n in zip(t["dims"], given.shape):
                if text in self.plan["sizes"]:
                    if sizes.setdefault(text, int(n)) != n:
                        raise Unfit(f"{t['name']}: {text} is {n} here and {sizes[text]} elsewhere")
                multiple = re.fullmatch(r"\((\w+) \* (\d+)\)", text)
                if multiple and multiple[1] in self.plan["sizes"]:
                    sizes.setdefault(multiple[1], int(n) // int(multiple[2]))
        for t in self.plan["tensors"]:
            for text, n, stride, given in zip(t["dims"], tensors[t["name"]].shape, t["strides"], tensors[t["name"]].stride()):
                if value(text, sizes) != n:
                    raise Unfit(f"{t['name']}: a dimension is {n}, {text} is expected")
                if n > 1 and value(stride, sizes) != given:
                    raise Unfit(f"{t['name']}: a stride is {given}, {stride} is expected")
        for a in self.plan["assumptions"]:
            if not value(a["condition"], sizes):
                raise Unfit(f"{a['text']} does not hold")
        return sizes

    def compiled(self):
        if self.kernel is None:
            self.kernel = tw.compile(source=self.plan["source"], entry=self.plan["entry"], arch=self.arch)
        return self.kernel

    def prepare(self, sms, scalars, tensors):
        plan, sizes = self.plan, self.sizes_of(tensors)
        names = [t["name"] for t in plan["tensors"]]
        args = []
        for a in plan["arguments"]:
            i = a["id"]
            if a["kind"] == "tensor":
                args.append(tensors[names[i]])
            elif a["kind"] == "size":
                args.append(tw.i32(sizes[plan["sizes"][i]]))
            elif a["kind"] == "scalar":
                args.append(_SCALARS[plan["scalars"][i]["dtype"]](scalars[plan["scalars"][i]["name"]]))
            else:
                m = plan["tensor_maps"][i]
                t = plan["tensors"][m["tensor"]]
                given = tensors[t["name"]]
                size = given.element_size()
                args.append(tw.tensor_map(given, dims=[value(t["dims"][d], sizes) for d in m["dims"]],
                                          strides=[value(t["strides"][d], sizes) * size for d in m["dims"][1:]], box=m["box"],
                                          swizzle=m["swizzle_bytes"], l2_promotion=m["l2_promotion_bytes"],
                                          fill="nan" if m["fill_with_nan"] else "zero", dtype=t["dtype"]))
        grid = [value(g, sizes) for g in plan["grid"]]
        cluster = plan["cluster"]
        if plan["persistent"]:
            resident = sms * plan["blocks_per_sm"]
            grid[0] = min(grid[0], resident // cluster[0] * cluster[0])
        return self.compiled().prepare(grid=tuple(grid), block=(plan["threads"], 1, 1), args=args, smem=plan["shared_bytes"],
                                       cluster=tuple(cluster) if cluster != [1, 1, 1] else None, pdl=plan.get("dependent_launch", False))


class Variants:
    """The kernels of one name, in the order in which they are tried."""

    def __init__(self, sms):
        self.sms, self.list = sms, []

    def fitting(self, **tensors):
        """The first variant that serves these tensors, as the launcher takes it."""
        reasons = []
        for k in self.list:
            try:
                k.sizes_of(tensors)
                return k
            except Unfit as e:
                reasons.append(str(e))
        raise Unfit("; ".join(reasons))

    def prepare(self, scalars=None, **tensors):
        reasons = []
        for k in self.list:
            try:
                return k.prepare(self.sms, scalars or {}, tensors)
            except Unfit as e:
                reasons.append(str(e))
        raise Unfit("; ".join(reasons))


def load(paths, sms=132, arch="sm_90a", workers=16, lazily=False):
    """{name: Variants} of plan files, compiled for the GPU at hand: all at once, or lazily each at its first launch."""
    plans = []
    for path in [paths] if isinstance(paths, str) else paths:
        with open(path) as f:
            plans += json.load(f)["kernels"]
    if lazily:
        out = {}
        for plan in plans:
            out.setdefault(plan["name"], Variants(sms)).list.append(PlannedKernel(plan, None, arch))
        return out
    kernels = tw.compile_many([dict(source=p["source"], name=p["name"] + ".cu", entry=p["entry"], arch=arch) for p in plans], workers=workers)
    out = {}
    for i, (plan, kernel) in enumerate(zip(plans, kernels)):
        if kernel.error and "entries: none" in kernel.error:  # seen in parallel batches: NVRTC's report came back empty
            kernel = kernels[i] = tw.compile_many([dict(source=plan["source"], name=plan["name"] + ".cu", entry=plan["entry"], arch=arch, cache=False)], workers=1)[0]
        if kernel.error:
            raise tw.TilewrightError(3, f"{plan['name']}: {kernel.error}")
        out.setdefault(plan["name"], Variants(sms)).list.append(PlannedKernel(plan, kernel))
    return out
