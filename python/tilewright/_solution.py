"""A task's file with `ModelNew`, that needs torch alone: the CUDA C++ of the kernels, compiled by NVRTC when it is first called.

    solution(task text, kernels.py, plan.json, report.json) -> text of the file        (`tilewright suite ... --emit-solutions`)

Everything that follows from the shapes is worked out here: grids, sizes, tensor maps. The file's own part (RUNTIME) allocates, encodes the maps and launches.
"""
import json
import os
import re
import subprocess
import tempfile

from ._library import TilewrightError

RUNTIME = '''
# ---- Made by Tilewright. Each kernel below was proved before its CUDA C++ was printed; the text that was proved is in _PROVED.
import ctypes as _ctypes
import glob as _glob
import json as _json
import os as _os
import struct as _struct
from concurrent.futures import ThreadPoolExecutor as _ThreadPoolExecutor

import torch as _torch

_PLAN = _json.loads(_PLAN_TEXT)


def _open(names):
    for name in names:
        try:
            return _ctypes.CDLL(name)
        except OSError:
            pass
    raise RuntimeError("not found: " + ", ".join(names))


def _nvrtc():
    """Beside torch, else of a CUDA toolkit."""
    packages = _os.path.dirname(_os.path.dirname(_os.path.abspath(_torch.__file__)))
    beside = _glob.glob(packages + "/nvidia/*/lib/libnvrtc.so.[0-9]*") + _glob.glob(packages + "/torch/lib/libnvrtc*.so*")
    beside = [b for b in beside if "builtins" not in b and ".alt." not in b]
    return _open(sorted(beside, reverse=True) + ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"])


def _cubin(nvrtc, kernel):
    program, size = _ctypes.c_void_p(), _ctypes.c_size_t()
    options = [b"--gpu-architecture=" + kernel["arch"].encode(), b"--std=c++17"]
    code = nvrtc.nvrtcCreateProgram(_ctypes.byref(program), kernel["source"].encode(), b"kernel.cu", 0, None, None)
    code = code or nvrtc.nvrtcCompileProgram(program, len(options), (_ctypes.c_char_p * len(options))(*options))
    if code:
        nvrtc.nvrtcGetProgramLogSize(program, _ctypes.byref(size))
        log = _ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(kernel["entry"] + ": " + log.value.decode())
    nvrtc.nvrtcGetCUBINSize(program, _ctypes.byref(size))
    cubin = _ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(_ctypes.byref(program))
    return cubin


class _Launches:
    """The launches of the plan, for one module's parameters on one GPU."""

    def __init__(self, parameters, device):
        self.parameters, self.device, self.maps = parameters, device, {}
        self.driver, nvrtc = _open(["libcuda.so.1", "libcuda.so"]), _nvrtc()
        with _ThreadPoolExecutor(min(8, _os.cpu_count() or 1)) as pool:
            cubins = list(pool.map(lambda k: _cubin(nvrtc, k), _PLAN["kernels"]))
        _torch.empty(1, device=device)  # the context is there
        self.functions = []
        for kernel, cubin in zip(_PLAN["kernels"], cubins):
            module, function = _ctypes.c_void_p(), _ctypes.c_void_p()
            self.check(self.driver.cuModuleLoadData(_ctypes.byref(module), cubin))
            self.check(self.driver.cuModuleGetFunction(_ctypes.byref(function), module, kernel["entry"].encode()))
            if kernel["shared_bytes"] > 48 * 1024:
                self.check(self.driver.cuFuncSetAttribute(function, 8, kernel["shared_bytes"]))
            self.functions.append(function)
        self.multiprocessors = _torch.cuda.get_device_properties(device).multi_processor_count

    def check(self, code):
        if code:
            text = _ctypes.c_char_p()
            self.driver.cuGetErrorString(code, _ctypes.byref(text))
            raise RuntimeError((text.value or b"CUDA error").decode())

    def map(self, about, address):
        key = (about["key"], address)
        if key not in self.maps:
            rank = len(about["sizes"])
            memory = _ctypes.create_string_buffer(192)  # the driver wants the map at a multiple of 64 bytes
            made = (_ctypes.c_uint64 * 16).from_buffer(memory, -_ctypes.addressof(memory) % 64)
            self.check(self.driver.cuTensorMapEncodeTiled(
                _ctypes.byref(made), about["type"], rank, _ctypes.c_void_p(address), (_ctypes.c_uint64 * rank)(*about["sizes"]),
                (_ctypes.c_uint64 * max(1, rank - 1))(*about["byte_strides"]), (_ctypes.c_uint32 * rank)(*about["box"]),
                (_ctypes.c_uint32 * rank)(*([1] * rank)), 0, about["swizzle"], about["promotion"], about["nan"]))
            if len(self.maps) > 256:
                self.maps.clear()
            self.maps[key] = made
        return self.maps[key]

    def launch(self, function, kernel, grid, stream, pointers):
        if kernel["cluster"] == [1, 1, 1]:
            return self.check(self.driver.cuLaunchKernel(function, *grid, kernel["threads"], 1, 1, kernel["shared_bytes"], stream, pointers, None))
        # CUlaunchAttribute: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION and its value; then CUlaunchConfig.
        attribute = _ctypes.create_string_buffer(_struct.pack("=i4x3I52x", 4, *kernel["cluster"]), 72)
        config = _struct.pack("=7I4xQQI4x", *grid, kernel["threads"], 1, 1, kernel["shared_bytes"], stream.value or 0, _ctypes.addressof(attribute), 1)
        self.check(self.driver.cuLaunchKernelEx(_ctypes.create_string_buffer(config, 56), function, pointers, None))

    def __call__(self, inputs):
        device, values = self.device, dict(self.parameters)
        given = iter(inputs)
        for about in _PLAN["inputs"]:
            if "random" in about:
                values[about["name"]] = _torch.randint(-2**31, 2**31, about["shape"], dtype=_torch.int32, device=device) if about["random"] == "words" else _torch.rand(about["shape"], device=device)
                continue
            x = next(given)
            x = x.contiguous() if isinstance(x, _torch.Tensor) else _torch.full((), x, dtype=_torch.float32, device=device)
            if list(x.shape) != about["shape"] or str(x.dtype) != "torch." + about["torch"]:
                raise RuntimeError(about["name"] + ": these kernels are for " + str(about["shape"]) + " of " + about["torch"])
            values[about["name"]] = x
        stream = _ctypes.c_void_p(_torch.cuda.current_stream(device).cuda_stream)
        for launch in _PLAN["launches"]:
            kernel, addresses = _PLAN["kernels"][launch["kernel"]], []
            for t in launch["tensors"]:
                if t["buffer"] not in values:
                    made = _PLAN["buffers"][t["buffer"]]
                    values[t["buffer"]] = _torch.empty(made["shape"], dtype=getattr(_torch, made["torch"]), device=device)
                x = values[t["buffer"]]
                addresses.append(x.data_ptr() + t["offset_bytes"])
                if t["zeroed"]:
                    self.check(self.driver.cuMemsetD8Async(_ctypes.c_uint64(addresses[-1]), 0, _ctypes.c_size_t(t["zeroed"]), stream))
            held = []
            for kind, n in launch["arguments"]:
                held.append(_ctypes.c_uint64(addresses[n]) if kind == "tensor" else _ctypes.c_int(launch["sizes"][n]) if kind == "size"
                            else self.map(launch["maps"][n], addresses[launch["maps"][n]["tensor"]]))
            grid = list(launch["grid"])
            if kernel["persistent"]:
                grid[0] = min(grid[0], self.multiprocessors * kernel["blocks_per_sm"])
            pointers = (_ctypes.c_void_p * len(held))(*[_ctypes.addressof(h) for h in held])
            self.launch(self.functions[launch["kernel"]], kernel, grid, stream, pointers)
            for name in launch["last"]:
                del values[name]
        out = [values[name] for name in _PLAN["outputs"]]
        return out[0] if len(out) == 1 else tuple(out)


class ModelNew(Model):
    """Model's parameters; its forward allocates and launches, nothing else."""

    def forward(self, *inputs):
        if not hasattr(self, "_launches"):
            state = {_parameter_name(n): v for n, v in [*self.named_parameters(), *self.named_buffers()]}
            fixed = {p["name"]: state[p["name"]].detach().contiguous() for p in _PLAN["parameters"] if "values" not in p}
            device = next((x.device for x in [*inputs, *fixed.values()] if isinstance(x, _torch.Tensor)), _torch.device("cuda"))
            for p in _PLAN["parameters"]:
                if "values" in p:
                    fixed[p["name"]] = _torch.tensor([float(v) if isinstance(v, str) else v for v in p["values"]], dtype=getattr(_torch, p["torch"]), device=device).reshape(p["shape"])
            object.__setattr__(self, "_launches", _Launches(fixed, device))
        return self._launches(inputs)
'''

_TORCH = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64", "bool": "bool"}
_BYTES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "bool": 1}
_MAP_TYPE = {"i32": 3, "i64": 5, "f16": 6, "f32": 7, "bf16": 9, "tf32": 11}  # of CUtensorMapDataType


def _emitted(kernels):
    """What `tilewright emit` says of each kernel: its source with the device functions it uses, and how it is launched."""
    from .compiled import program
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "kernels.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(kernels)
        done = subprocess.run([program(), "emit", path, "--to", "plan", "--self-contained", "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            raise TilewrightError(done.returncode, (done.stderr or done.stdout).strip())
        found = {k["name"]: k for k in json.loads(done.stdout.replace(path, "kernels.py"))["kernels"]}
        if any('#include "tw_' in k["source"] for k in found.values()):
            raise TilewrightError(1, "the device headers were not found beside the program\n  fix: use the program of an installation, or of the build folder")
        return found


def _number(text, sizes):
    """An expression of sizes, as the program prints it."""
    if not re.fullmatch(r"[\w\s()+*/%,<>=!-]*", str(text)):
        raise TilewrightError(1, f"not an expression of sizes: {text}")
    return int(eval(str(text), {"__builtins__": {}, "min": min, "max": max}, sizes))  # of our own program's text, checked above


def _tensor_map(about, tensor, given, which):
    dims, size = about["dims"], _BYTES[tensor["dtype"]]
    return {"key": which, "tensor": about["tensor"], "type": _MAP_TYPE[tensor["dtype"]], "sizes": [given["shape"][d] for d in dims],
            "byte_strides": [given["strides"][d] * size for d in dims[1:]], "box": about["box"], "swizzle": {0: 0, 32: 1, 64: 2, 128: 3}[about["swizzle_bytes"]],
            "promotion": {0: 0, 64: 1, 128: 2, 256: 3}[about["l2_promotion_bytes"]], "nan": int(about["fill_with_nan"])}


def _launch(launch, kernel, number, last, buffers):
    given, sizes = launch["arguments"], {}
    for tensor, argument in zip(kernel["tensors"], given):
        for text, n in zip(tensor["dims"], argument["shape"]):
            if text in kernel["sizes"]:
                sizes[text] = n
    blocks = kernel["cluster"][0] * kernel["cluster"][1] * kernel["cluster"][2]
    if kernel["scalars"] or blocks > 8 or kernel["dependent_launch"] or (blocks > 1 and kernel["persistent"]):
        raise TilewrightError(1, f"{kernel['name']}: scalars, clusters of more than eight blocks or in a persistent grid, and dependent launches are not written into solutions")
    for assumed in kernel["assumptions"]:
        if not _number(assumed["condition"], sizes):
            raise TilewrightError(1, f"{kernel['name']} assumes {assumed['text']}")
    tensors = []
    for tensor, argument in zip(kernel["tensors"], given):
        zeroed = 0
        if tensor["zeroed"]:
            if argument["offset"]:
                raise TilewrightError(1, f"{kernel['name']}: a part of a buffer that starts at zero is not written into solutions")
            made = buffers[argument["buffer"]]
            zeroed = _BYTES[made["dtype"]]
            for n in made["shape"]:
                zeroed *= n
        tensors.append({"buffer": argument["buffer"], "offset_bytes": argument["offset"] * _BYTES[tensor["dtype"]], "zeroed": zeroed})
    return {"kernel": number, "grid": [_number(g, sizes) for g in kernel["grid"]], "tensors": tensors, "sizes": [sizes[s] for s in kernel["sizes"]],
            "arguments": [[a["kind"], a["id"]] for a in kernel["arguments"]], "last": last,
            "maps": [_tensor_map(m, kernel["tensors"][m["tensor"]], given[m["tensor"]], f"{number}.{i}") for i, m in enumerate(kernel["tensor_maps"])]}


def _last_uses(plan):
    """By launch: the buffers that nothing reads after it."""
    kept, last = {o["buffer"] for o in plan["outputs"]}, {}
    for i, launch in enumerate(plan["launches"]):
        for a in launch["arguments"]:
            if a["buffer"].startswith("%") and a["buffer"] not in kept:
                last[a["buffer"]] = i
    return [[name for name, at in last.items() if at == i] for i in range(len(plan["launches"]))]


def solution(task, kernels, plan, report):
    """The text of a file with the task's own text, then ModelNew."""
    plan, emitted = json.loads(plan), _emitted(kernels)
    names = list(dict.fromkeys(launch["kernel"] for launch in plan["launches"]))
    launches = [_launch(launch, emitted[launch["kernel"]], names.index(launch["kernel"]), last, plan["buffers"]) for launch, last in zip(plan["launches"], _last_uses(plan))]
    embedded = {
        "inputs": [dict(i, torch=_TORCH[i["dtype"]]) for i in plan["inputs"]], "parameters": [dict(p, torch=_TORCH[p["dtype"]]) for p in plan["parameters"]], "outputs": [o["buffer"] for o in plan["outputs"]],
        "buffers": {name: dict(b, torch=_TORCH[b["dtype"]]) for name, b in plan["buffers"].items()}, "launches": launches,
        "kernels": [{k: emitted[n][k] for k in ("entry", "arch", "threads", "cluster", "shared_bytes", "persistent", "blocks_per_sm", "source")} for n in names]}
    verdict = json.loads(report)
    head = f"\n\n_PROVED = {verdict['proved']!r}, {kernels!r}\n_PLAN_TEXT = {json.dumps(embedded)!r}\n"
    import inspect
    from .graph import parameter_name
    naming = inspect.getsource(parameter_name).replace("def parameter_name", "def _parameter_name")
    return task.rstrip() + head + RUNTIME.rstrip() + "\n\n\n" + naming
