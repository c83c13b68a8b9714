"""The benches' Python face of libtilewright.so: compile, launch, TMA descriptors, the cuBLASLt peer, interleaved timing.

    import harness as tw
    k = tw.compile("targets/gemm.cu", entry="gemm", defines={"BM": 128})
    a_map = tw.tensor_map(a, dims=[K, M], strides=[2 * K], box=[64, 128], swizzle=128)
    run = k.prepare(grid=(132, 1, 1), block=(384, 1, 1), args=[a_map, c, tw.i32(K)], smem=k_smem)
    run()

torch is imported only by what needs it (timing, checking), so compiling works on a machine with neither torch nor a GPU.
"""
import concurrent.futures
import ctypes
import glob
import json
import os
import random
import statistics
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ABI_VERSION = 1


class TilewrightError(RuntimeError):
    """What the library reported; `code` is one of the TW_ERROR_* numbers of runtime/capi.h."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


# ---------------------------------------------------------------------------------------------------------------------
# The library


class _LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("cluster", c_uint32 * 3),
                ("dynamic_shared_bytes", c_uint32), ("cooperative", c_uint32), ("programmatic", c_uint32),
                ("stream", c_void_p)]


class _KernelFacts(ctypes.Structure):
    _fields_ = [("registers", c_int32), ("local_bytes", c_int32), ("static_shared_bytes", c_int32),
                ("max_threads_per_block", c_int32)]


class _TensorMapRequest(ctypes.Structure):
    _fields_ = [("address", c_uint64), ("dtype", c_char_p), ("rank", c_uint32), ("swizzle_bytes", c_uint32),
                ("l2_promotion_bytes", c_uint32), ("interleave_bytes", c_uint32), ("fill_with_nan", c_uint32),
                ("box", c_uint32 * 5), ("sizes", c_uint64 * 5), ("byte_strides", c_uint64 * 4)]


def device_headers():
    """The folder of tw_tile.cuh: TILEWRIGHT_HEADERS, else of the source tree, else beside the library (a dist that was copied alone)."""
    folders = [os.environ.get("TILEWRIGHT_HEADERS", ""), os.path.join(REPOSITORY, "src", "codegen", "cuda")]
    if not any(f and os.path.exists(os.path.join(f, "tw_tile.cuh")) for f in folders):
        folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(find_library()))), "share", "tilewright", "cuda"))
    for folder in folders:
        if folder and os.path.exists(os.path.join(folder, "tw_tile.cuh")):
            return folder
    raise TilewrightError(2, "tw_tile.cuh was not found in the source tree or beside the library\n  fix: set TILEWRIGHT_HEADERS to its folder")


def find_library():
    """The file: TILEWRIGHT_LIBRARY, else the newest one under build*/lib or dist/*/lib."""
    named = os.environ.get("TILEWRIGHT_LIBRARY")
    if named:
        return named
    found = []
    for pattern in ("build*/lib/libtilewright.so", "dist/*/lib/libtilewright.so"):
        found += glob.glob(os.path.join(REPOSITORY, pattern))
    if not found:
        raise TilewrightError(2, "libtilewright.so was not found under build*/lib or dist/\n"
                                 "  fix: cmake --preset release && cmake --build build --target tilewright, or set TILEWRIGHT_LIBRARY")
    return max(found, key=os.path.getmtime)


_library = None


def library():
    global _library
    if _library is not None:
        return _library
    # NVRTC and cuBLASLt may live in this interpreter's packages (torch brings them).
    packages = [p for p in sys.path if p and os.path.isdir(os.path.join(p, "nvidia"))]
    if packages and "TILEWRIGHT_PYTHON_PATH" not in os.environ:
        os.environ["TILEWRIGHT_PYTHON_PATH"] = ":".join(packages)
    lib = ctypes.CDLL(find_library())
    signatures = {
        "tw_abi_version": (c_int, []),
        "tw_version": (c_char_p, []),
        "tw_last_error": (c_char_p, []),
        "tw_machine_report": (c_char_p, []),
        "tw_compile": (c_int, [c_char_p, POINTER(c_void_p)]),
        "tw_image_report": (c_char_p, [c_void_p]),
        "tw_image_cubin": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
        "tw_image_free": (None, [c_void_p]),
        "tw_kernel_load": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
        "tw_kernel_free": (None, [c_void_p]),
        "tw_kernel_get_facts": (c_int, [c_void_p, POINTER(_KernelFacts)]),
        "tw_kernel_launch": (c_int, [c_void_p, c_void_p, c_void_p]),
        "tw_tensor_map_encode": (c_int, [POINTER(_TensorMapRequest), c_void_p]),
        "tw_gemm_create": (c_int, [c_char_p, POINTER(c_void_p)]),
        "tw_gemm_report": (c_char_p, [c_void_p]),
        "tw_gemm_run": (c_int, [c_void_p, c_uint64, c_uint64, c_uint64, c_void_p]),
        "tw_gemm_free": (None, [c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        call = getattr(lib, name)
        call.restype, call.argtypes = result, arguments
    if lib.tw_abi_version() != ABI_VERSION:
        raise TilewrightError(70, f"{lib._name} has ABI {lib.tw_abi_version()}, this file expects {ABI_VERSION}: rebuild it")
    _library = lib
    return lib


def _check(code):
    if code != 0:
        raise TilewrightError(code, library().tw_last_error().decode(errors="replace"))


def machine():
    """What this machine has (driver, GPUs, NVRTC, cuBLASLt, tools), as a dict."""
    return json.loads(library().tw_machine_report().decode())


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def i32(value):
    return ctypes.c_int32(value)


def u32(value):
    return ctypes.c_uint32(value)


def i64(value):
    return ctypes.c_int64(value)


def u64(value):
    return ctypes.c_uint64(value)


def f32(value):
    return ctypes.c_float(value)


def f64(value):
    return ctypes.c_double(value)


def pointer(address):
    return ctypes.c_uint64(address)


class TensorMap:
    """A 128-byte TMA descriptor, passed by value (const __grid_constant__). Keeps its tensor alive."""

    def __init__(self, tensor):
        self._tensor = tensor
        # The kernel's parameter buffer is aligned by the compiler; the host copy must be a multiple of 64 too.
        self._memory = ctypes.create_string_buffer(128 + 128)
        self.address = (ctypes.addressof(self._memory) + 127) // 128 * 128

    def bytes(self):
        return ctypes.string_at(self.address, 128)


_TORCH_DTYPES = {"torch.bfloat16": "bf16", "torch.float16": "f16", "torch.float32": "f32", "torch.float64": "f64",
                 "torch.uint8": "u8", "torch.int8": "i8", "torch.int32": "i32", "torch.int64": "i64",
                 "torch.float8_e4m3fn": "e4m3", "torch.float8_e5m2": "e5m2"}


def tensor_map(tensor_or_ptr, dtype=None, dims=None, strides=None, box=None, swizzle=0, l2_promotion=0, interleave=0,
               fill="zero"):
    """A TMA descriptor. dims: elements, innermost first; strides: bytes of dims 1..; box: elements, innermost first.

    For a torch tensor, dtype, dims and strides are taken from it when not given (its last dimension must be contiguous).
    """
    if hasattr(tensor_or_ptr, "data_ptr"):
        address = tensor_or_ptr.data_ptr()
        dtype = dtype or _TORCH_DTYPES[str(tensor_or_ptr.dtype)]
        if dims is None:
            if tensor_or_ptr.stride(-1) != 1:
                raise TilewrightError(1, "tensor_map: the tensor's last dimension is not contiguous")
            dims = list(reversed(tensor_or_ptr.shape))
            size = tensor_or_ptr.element_size()
            strides = [s * size for s in reversed(tensor_or_ptr.stride()[:-1])]
    else:
        address = int(tensor_or_ptr)
    if dtype is None or dims is None or box is None:
        raise TilewrightError(1, "tensor_map: dtype, dims and box are needed for a bare pointer")
    strides = list(strides or [])
    if len(box) != len(dims) or len(strides) != len(dims) - 1:
        raise TilewrightError(1, f"tensor_map: {len(dims)} dims want {len(dims)} box extents and {len(dims) - 1} strides; "
                                 f"got {len(box)} and {len(strides)}")
    if fill not in ("zero", "nan"):
        raise TilewrightError(1, f"tensor_map: fill is '{fill}'; it can be 'zero' or 'nan'")
    request = _TensorMapRequest(address=address, dtype=dtype.encode(), rank=len(dims), swizzle_bytes=swizzle,
                                l2_promotion_bytes=l2_promotion, interleave_bytes=interleave,
                                fill_with_nan=1 if fill == "nan" else 0)
    request.sizes[:len(dims)] = [int(d) for d in dims]
    request.byte_strides[:len(strides)] = [int(s) for s in strides]
    request.box[:len(box)] = [int(b) for b in box]
    made = TensorMap(tensor_or_ptr)
    _check(library().tw_tensor_map_encode(byref(request), made.address))
    return made


def _argument_address(value, keep):
    """The address of the parameter's bytes; what must outlive the launch goes into `keep`."""
    if isinstance(value, TensorMap):
        keep.append(value)
        return value.address
    if hasattr(value, "data_ptr"):
        holder = ctypes.c_uint64(value.data_ptr())
        keep += [holder, value]
    elif isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):
        holder = value
        keep.append(holder)
    else:
        raise TilewrightError(1, f"a kernel argument is {type(value).__name__}; wrap numbers: tw.i32(5), tw.f32(1.0), tw.i64(..), "
                                 "tw.pointer(address); tensors and tensor maps go as they are")
    return ctypes.addressof(holder)


def _triple(value):
    value = (value,) if isinstance(value, int) else tuple(value)
    return value + (1,) * (3 - len(value))


def _current_stream():
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())  # current_stream() takes microseconds


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


class PreparedLaunch:
    """A launch whose arguments are marshalled; call it to launch on torch's current stream (or the one given)."""

    __slots__ = ("_kernel", "_config", "_config_address", "_arguments", "_keep", "_launch", "_stream")

    def __init__(self, kernel, config, arguments, keep, stream):
        self._kernel, self._config, self._arguments, self._keep = kernel, config, arguments, keep
        self._config_address = ctypes.addressof(config)
        self._launch = library().tw_kernel_launch
        self._stream = stream

    def __call__(self):
        self._config.stream = _current_stream() if self._stream is None else self._stream
        code = self._launch(self._kernel, self._config_address, self._arguments)
        if code:
            _check(code)


class Kernel:
    """One compiled entry. `error` is None, or the compiler's text (then nothing else is filled in)."""

    def __init__(self, entry, defines):
        self.entry, self.defines = entry, dict(defines or {})
        self.error = None
        self.registers = self.spill_bytes = self.local_bytes = self.shared_static = None
        self.log, self.report, self.remarks = "", {}, []
        self._image = self._loaded = None

    def _fill(self, image):
        self._image = image
        self.report = json.loads(library().tw_image_report(image).decode(errors="replace"))
        self.log, self.remarks = self.report["log"], self.report["remarks"]
        entries = [k for k in self.report["kernels"] if k["entry"]]
        if self.entry is None and len(entries) == 1:
            self.entry = entries[0]["name"]
        mine = next((k for k in entries if k["name"] == self.entry), None)
        if mine is None:
            names = ", ".join(k["name"] for k in entries) or "none"
            self.error = f"no entry '{self.entry}' (entries: {names}); declare it extern \"C\" __global__"
            return
        self.registers = mine["registers"]
        self.spill_bytes = mine["spill_store_bytes"] + mine["spill_load_bytes"]
        self.local_bytes = mine["stack_bytes"]
        self.shared_static = mine["static_shared_bytes"]

    @property
    def wgmma_serialized(self):
        return any(r["kind"] == "wgmma_serialized" for r in self.remarks)

    @property
    def from_cache(self):
        return bool(self.report.get("from_cache"))

    def cubin(self):
        data, size = c_void_p(), c_size_t()
        _check(library().tw_image_cubin(self._image, byref(data), byref(size)))
        return ctypes.string_at(data, size.value)

    def load(self):
        """Loads onto the GPU now (done by the first launch otherwise). Not allowed inside a graph capture."""
        if self.error:
            raise TilewrightError(3, self.error)
        if self._loaded is None:
            handle = c_void_p()
            _check(library().tw_kernel_load(self._image, self.entry.encode(), byref(handle)))
            self._loaded = handle
        return self

    def prepare(self, grid, block, args=(), smem=0, cluster=None, stream=None, cooperative=False, pdl=False):
        self.load()
        keep = []
        addresses = [_argument_address(a, keep) for a in args]
        arguments = (c_void_p * max(1, len(addresses)))(*addresses)
        config = _LaunchConfig(grid=_triple(grid), block=_triple(block), cluster=_triple(cluster) if cluster else (0, 0, 0),
                               dynamic_shared_bytes=smem, cooperative=int(cooperative), programmatic=int(pdl))
        stream = getattr(stream, "cuda_stream", stream)
        return PreparedLaunch(self._loaded, config, arguments, (keep, self), stream)

    def launch(self, grid, block, args=(), smem=0, cluster=None, stream=None, cooperative=False, pdl=False):
        self.prepare(grid, block, args, smem, cluster, stream, cooperative, pdl)()

    # No __del__: kernels live as long as the process, and unloading a module while a graph holds it is an error.


def compile(source_path=None, entry=None, defines=None, arch="sm_90a", options=(), include_folders=(), source=None,
            name=None, cache=True):
    """Compiles with NVRTC through the disk cache. Raises TilewrightError with the compiler's text when it is refused."""
    kernel = _compile_quietly(source_path, entry, defines, arch, options, include_folders, source, name, cache)
    if kernel.error:
        raise TilewrightError(3, kernel.error)
    return kernel


def _compile_quietly(source_path=None, entry=None, defines=None, arch="sm_90a", options=(), include_folders=(), source=None,
                     name=None, cache=True):
    request = {"arch": arch, "defines": dict(defines or {}), "options": list(options), "cache": cache,
               "include_folders": [os.fspath(f) for f in include_folders] + [device_headers()]}
    if source_path is not None:
        request["path"] = os.fspath(source_path)
    else:
        request["source"] = source
        request["name"] = name or "inline.cu"
    kernel = Kernel(entry, defines)
    image = c_void_p()
    lib = library()
    if lib.tw_compile(json.dumps(request).encode(), byref(image)) != 0:
        kernel.error = lib.tw_last_error().decode(errors="replace")
    else:
        kernel._fill(image)
    return kernel


def compile_many(requests, workers=16):
    """Compiles in parallel; each request is compile()'s keywords. A refused one has `error` set instead of raising."""
    library()
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        return list(pool.map(lambda r: _compile_quietly(**r), requests))


# ---------------------------------------------------------------------------------------------------------------------
# The peer


class CublasLtGemm:
    """D[m, n] = sum over k of A * B with the fastest of cuBLASLt's algorithms. `algo` describes it.

    Letters of `layout`: A then B. A: T is A[m, k], N is A[k, m]. B: N is B[n, k], T is B[k, n]. "TN": both contiguous in k.
    """

    def __init__(self, handle):
        self._handle = handle
        self.report = json.loads(library().tw_gemm_report(handle).decode())
        self.algo = self.report["algorithm"]
        self._run = library().tw_gemm_run

    def run(self, a, b, d, stream=None):
        code = self._run(self._handle, a.data_ptr(), b.data_ptr(), d.data_ptr(),
                         _current_stream() if stream is None else getattr(stream, "cuda_stream", stream))
        if code:
            _check(code)


def cublaslt_gemm(m, n, k, dtype="bf16", layout="TN", tune=True, out_dtype=None, compute="f32", heuristics=64,
                  workspace_bytes=64 << 20):
    request = {"m": m, "n": n, "k": k, "dtype": dtype, "layout": layout, "tune": tune, "compute": compute,
               "out_dtype": out_dtype or ("bf16" if dtype == "e4m3" else dtype), "heuristics": heuristics,
               "workspace_bytes": workspace_bytes}
    handle = c_void_p()
    _check(library().tw_gemm_create(json.dumps(request).encode(), byref(handle)))
    return CublasLtGemm(handle)


# ---------------------------------------------------------------------------------------------------------------------
# Measuring


def bootstrap_interval(samples, statistic=statistics.median, resamples=400, confidence=0.95, seed=1):
    """Percentile bootstrap interval of a statistic of the samples."""
    generator = random.Random(seed)
    values = sorted(statistic(generator.choices(samples, k=len(samples))) for _ in range(resamples))
    tail = (1 - confidence) / 2
    return values[int(tail * resamples)], values[min(resamples - 1, int((1 - tail) * resamples))]


def interleave(functions, rotations, calls_per_graph=None, rounds=30, warmup_ms=50.0, target_graph_us=1500.0, baseline=None):
    """Times functions against one another in one run.

    functions: {name: fn}; fn(i) works on input set i, 0 <= i < rotations, and only enqueues work on the current stream.
    Each is captured as a CUDA graph of several calls over rotating sets; the graphs are replayed in turn (A B A B ...), the
    GPU never idle between them, one event between graphs. Choose `rotations` so that all sets together exceed L2.
    calls_per_graph: None picks, per function, a multiple of `rotations` that lasts about target_graph_us.
    Returns {name: {median_us, lo_us, hi_us, calls_per_graph, samples}, "ratios": {"a/b": {ratio, lo, hi}}}: times are of one
    call; ratio "peer/ours" over 1 means ours is faster. With `baseline`, ratios are baseline over each other; else all pairs.
    """
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    graphs, calls = {}, {}
    with torch.cuda.stream(stream):
        for name, fn in functions.items():
            fn(0)  # loads modules: not allowed inside a capture
            stream.synchronize()
            count = calls_per_graph
            if count is None:
                # A graph, not calls: the host's time for a call must not decide how many of them share a graph's own overhead.
                probe = torch.cuda.CUDAGraph()
                with torch.cuda.graph(probe, stream=stream):
                    for i in range(rotations):
                        fn(i)
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                probe.replay()
                begin.record(stream)
                probe.replay()
                end.record(stream)
                end.synchronize()
                once_us = max(0.5, begin.elapsed_time(end) * 1000.0 / rotations)
                count = max(1, min(512, round(target_graph_us / once_us / rotations))) * rotations
            calls[name] = count
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for i in range(count):
                    fn(i % rotations)
            graphs[name] = graph
        names = list(functions)
        # Warm up: clocks and caches settle under the load that is measured.
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(stream)
        for name in names:
            graphs[name].replay()
        end.record(stream)
        end.synchronize()
        lap_ms = max(0.01, begin.elapsed_time(end))
        for _ in range(min(2000, int(warmup_ms / lap_ms) + 1)):
            for name in names:
                graphs[name].replay()
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(rounds * len(names) + 1)]
        marks[0].record(stream)
        at = 0
        order = list(names)
        sequence = []
        for r in range(rounds):
            for name in order:
                graphs[name].replay()
                at += 1
                marks[at].record(stream)
                sequence.append(name)
            order = order[1:] + order[:1]  # each follows each other one in turn
        stream.synchronize()
    torch.cuda.current_stream().wait_stream(stream)

    samples = {name: [] for name in names}
    for index, name in enumerate(sequence):
        samples[name].append(marks[index].elapsed_time(marks[index + 1]) * 1000.0 / calls[name])
    result = {}
    for name in names:
        lo, hi = bootstrap_interval(samples[name])
        result[name] = {"median_us": statistics.median(samples[name]), "lo_us": lo, "hi_us": hi,
                        "calls_per_graph": calls[name], "samples": [round(s, 4) for s in samples[name]]}
    ratios = {}
    pairs = [(baseline, n) for n in names if n != baseline] if baseline else [(a, b) for a in names for b in names if a != b]
    for numerator, denominator in pairs:
        # Paired by round: a slow spell of the machine hits both.
        quotients = [a / b for a, b in zip(samples[numerator], samples[denominator])]
        lo, hi = bootstrap_interval(quotients)
        ratios[f"{numerator}/{denominator}"] = {"ratio": statistics.median(quotients), "lo": lo, "hi": hi}
    result["ratios"] = ratios
    return result


def check(out, ref64, tol):
    """Compares with a reference of higher precision: relative Frobenius error, largest difference, NaN or infinity in out."""
    import torch

    wide = torch.float64 if ref64.dtype == torch.float64 else torch.float32
    got = out.to(wide)
    bad = int((~torch.isfinite(got)).sum().item())
    difference = got - ref64
    norm = torch.linalg.vector_norm(ref64).item()
    rel = torch.linalg.vector_norm(difference).item() / norm if norm > 0 else torch.linalg.vector_norm(difference).item()
    worst = difference.abs().max().item() if difference.numel() else 0.0
    return {"rel_fro": rel, "max_abs": worst, "nan": bad, "ok": bad == 0 and rel <= tol}


def poison(tensor):
    """Fills an output with NaN (floats) or 0x7f bytes, so that an element that is never written is seen."""
    if tensor.dtype.is_floating_point:
        tensor.fill_(float("nan"))
    else:
        tensor.fill_(0x7F)
    return tensor
