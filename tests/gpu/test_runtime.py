"""The runtime on a real GPU: launches, TMA descriptors, clusters, the cuBLASLt peer, timing, faults.

Run by `make test-gpu` (with pytest where the Python that has torch has it, else with unittest).
"""
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import harness as tw  # noqa: E402

try:
    import torch
    WHY_NOT = None if torch.cuda.is_available() else "torch sees no GPU"
except ImportError:
    torch, WHY_NOT = None, "no torch in this Python"
if WHY_NOT and os.environ.get("TILEWRIGHT_REQUIRE_GPU"):
    raise RuntimeError(f"a GPU was asked for, but {WHY_NOT}")
HOPPER = WHY_NOT is None and torch.cuda.get_device_capability() == (9, 0)
ARCH = "sm_90a" if HOPPER or WHY_NOT else "sm_%d%d" % torch.cuda.get_device_capability()

SCALE = """
extern "C" __global__ void scale(float* x, const float* y, float factor, int n, long long offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i + offset] = y[i] * factor * CONSTANT;
}"""

# One box through TMA into shared memory, then out as it lies there.
TMA = """
#include "tw_device.cuh"
using namespace tw;
extern "C" __global__ void box(const __grid_constant__ TensorMap map, unsigned short* out, int c0, int c1) {
    extern __shared__ __align__(1024) unsigned char tile[];  // 64 rows of 128 bytes, then the barrier
    u32 bar = smem_addr(tile + 64 * 128);
    if (threadIdx.x == 0) {
        mbarrier_init(bar, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(bar, 64 * 128);
        tma_load_2d(smem_addr(tile), &map, bar, c0, c1);
    }
    mbarrier_wait(bar, 0);
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) out[i] = reinterpret_cast<unsigned short*>(tile)[i];
}"""

CLUSTER = """
extern "C" __global__ void who(int* out) {
    unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    extern __shared__ int unused[];
    unused[threadIdx.x] = 0;
    int block = blockIdx.x + gridDim.x * blockIdx.y;
    if (threadIdx.x == 0) out[2 * block] = rank, out[2 * block + 1] = size;
}"""


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Launching(unittest.TestCase):
    def test_every_argument_kind_arrives_and_nothing_else_is_written(self):
        kernel = tw.compile(source=SCALE, entry="scale", defines={"CONSTANT": 3}, arch=ARCH)
        n = 100003
        y = torch.randn(n, device="cuda")
        x = tw.poison(torch.empty(n + 4, device="cuda"))
        kernel.launch(grid=(n + 255) // 256, block=256, args=[x, y, tw.f32(2.0), tw.i32(n), tw.i64(2)])
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(x[2:-2], y * 6))
        self.assertTrue(torch.isnan(x[:2]).all() and torch.isnan(x[-2:]).all())

    def test_a_prepared_launch_can_be_captured_and_replayed(self):
        kernel = tw.compile(source=SCALE, entry="scale", defines={"CONSTANT": 1}, arch=ARCH)
        x = torch.full((1000,), 1.0, device="cuda")
        double = kernel.prepare(grid=4, block=256, args=[x, x, tw.f32(2.0), tw.i32(1000), tw.i64(0)])
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            double()
            double()
        self.assertEqual(x.unique().tolist(), [1.0], "capturing must not run")
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(x.unique().tolist(), [64.0])

    def test_dynamic_shared_memory_at_and_over_the_default_limit(self):
        # 1 KiB static: 48 KiB dynamic is already more than a kernel gets unasked.
        source = """extern "C" __global__ void fill(int* out, int words) {
            __shared__ int few[256]; extern __shared__ int many[];
            few[threadIdx.x % 256] = 1;
            for (int i = threadIdx.x; i < words; i += blockDim.x) many[i] = i;
            __syncthreads();
            if (threadIdx.x == 0) out[0] = many[words - 1] + few[0]; }"""
        kernel = tw.compile(source=source, entry="fill", arch=ARCH)
        for size in (1024, 47 * 1024, 48 * 1024, 96 * 1024, 150 * 1024, 1024):
            out = torch.zeros(1, device="cuda", dtype=torch.int32)
            kernel.launch(grid=1, block=256, args=[out, tw.i32(size // 4)], smem=size)
            self.assertEqual(out.item(), size // 4, size)

    def test_impossible_launches_say_why_and_do_no_harm(self):
        kernel = tw.compile(source=CLUSTER, entry="who", arch=ARCH)
        out = torch.zeros(64, device="cuda", dtype=torch.int32)
        for wanted, shape in (("every extent", dict(grid=0, block=32)), ("block (2000, 1, 1)", dict(grid=1, block=2000)),
                              ("300000 bytes", dict(grid=1, block=32, smem=300000)),
                              ("not a multiple of cluster", dict(grid=3, block=32, cluster=(2, 1, 1)))):
            with self.assertRaises(tw.TilewrightError) as caught:
                kernel.launch(args=[out], **shape)
            self.assertIn(wanted, str(caught.exception))
        with self.assertRaises(tw.TilewrightError):
            kernel.launch(grid=1, block=32, args=[5])  # a bare number has no type
        kernel.launch(grid=1, block=32, args=[out], smem=1024)
        torch.cuda.synchronize()

    @unittest.skipUnless(HOPPER, "clusters need compute capability 9.0")
    def test_clusters_have_the_shape_that_was_asked_for(self):
        kernel = tw.compile(source=CLUSTER, entry="who", arch=ARCH)
        for cluster, grid in (((2, 1, 1), (8, 1)), ((2, 2, 1), (4, 4)), ((8, 1, 1), (16, 1)), ((16, 1, 1), (16, 1)), (None, (4, 1))):
            blocks = grid[0] * grid[1]
            size = 1 if cluster is None else cluster[0] * cluster[1]
            out = torch.full((blocks, 2), -1, device="cuda", dtype=torch.int32)
            kernel.launch(grid=grid, block=128, args=[out], cluster=cluster, smem=100000)
            ranks, sizes = out[:, 0].tolist(), out[:, 1].tolist()
            self.assertEqual(set(sizes), {size})
            self.assertEqual(sorted(ranks), sorted(list(range(size)) * (blocks // size)))
        out = torch.zeros(8, device="cuda", dtype=torch.int32)
        kernel.launch(grid=4, block=128, args=[out], smem=1024, pdl=True)
        kernel.launch(grid=4, block=128, args=[out], smem=1024, cooperative=True)
        torch.cuda.synchronize()

    def test_a_kernel_that_traps_is_named_and_the_next_process_works(self):
        script = f"""
import sys; sys.path.insert(0, {os.path.join(ROOT, "bench")!r})
import harness as tw, torch
x = torch.zeros(64, device="cuda")
k = tw.compile(source='extern "C" __global__ void t(float* x) {{ asm("trap;"); x[0] = 1; }}', entry="t", arch={ARCH!r})
k.launch(grid=1, block=32, args=[x])
try: torch.cuda.synchronize()
except Exception: pass
try: k.launch(grid=1, block=32, args=[x])
except tw.TilewrightError as error: print(error)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        self.assertIn("CUDA_ERROR_LAUNCH_FAILED", done.stdout, done.stderr)
        self.assertIn("compute-sanitizer", done.stdout)


@unittest.skipIf(WHY_NOT or not HOPPER, WHY_NOT or "TMA needs compute capability 9.0")
class TensorMaps(unittest.TestCase):
    def test_boxes_swizzles_and_out_of_bounds_elements(self):
        kernel = tw.compile(source=TMA, entry="box")
        rows, columns = 200, 328
        payload = torch.arange(rows * columns, device="cuda", dtype=torch.int32).remainder(30011).to(torch.int16)
        payload = payload.reshape(rows, columns) + 1  # zero is what is read out of bounds
        x = payload.view(torch.bfloat16)
        for swizzle in (0, 128):
            for c0, c1 in ((0, 0), (64, 100), (304, 150), (-8, -3)):
                described = tw.tensor_map(x, dtype="bf16", dims=[columns, rows], strides=[2 * columns], box=[64, 64], swizzle=swizzle,
                                          l2_promotion=128)
                derived = tw.tensor_map(x, box=[64, 64], swizzle=swizzle, l2_promotion=128)
                self.assertEqual(described.bytes(), derived.bytes())
                out = torch.full((64, 64), -1, device="cuda", dtype=torch.int16)
                kernel.launch(grid=1, block=128, args=[described, out, tw.i32(c0), tw.i32(c1)], smem=64 * 128 + 16)
                torch.cuda.synchronize()
                expected = torch.zeros(64, 64, dtype=torch.int16, device="cuda")
                for r in range(64):
                    if 0 <= c1 + r < rows:
                        low, high = max(0, c0), min(columns, c0 + 64)
                        expected[r, low - c0:high - c0] = payload[c1 + r, low:high]
                if swizzle == 128:  # 16-byte chunk index XOR row index modulo 8
                    chunks = expected.view(64, 8, 8)
                    swizzled = torch.empty_like(chunks)
                    for r in range(64):
                        for chunk in range(8):
                            swizzled[r, chunk ^ (r % 8)] = chunks[r, chunk]
                    expected = swizzled.view(64, 64)
                self.assertTrue(torch.equal(out, expected), (swizzle, c0, c1))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Peer(unittest.TestCase):
    def multiply(self, m, n, k, layout, dtype, out_dtype, compute, tolerance):
        types = {"f16": torch.float16, "f32": torch.float32, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn}
        a, b = torch.randn(m, k, device="cuda").to(types[dtype]), torch.randn(n, k, device="cuda").to(types[dtype])
        reference = a.double() @ b.double().t()
        a = a if layout[0] == "T" else a.t().contiguous()
        b = b if layout[1] == "N" else b.t().contiguous()
        gemm = tw.cublaslt_gemm(m, n, k, dtype=dtype, layout=layout, out_dtype=out_dtype, compute=compute, heuristics=8)
        d = tw.poison(torch.empty(m, n, device="cuda", dtype=types[out_dtype]))
        gemm.run(a, b, d)
        result = tw.check(d, reference, tolerance)
        self.assertTrue(result["ok"], (m, n, k, layout, dtype, result))
        self.assertIn(gemm.algo, [c["algorithm"] for c in gemm.report["candidates"]])

    def test_all_layouts_aligned_and_not(self):
        for m, n, k in ((64, 96, 80), (1000, 3000, 777)):
            for layout in ("TN", "NN", "NT", "TT"):
                self.multiply(m, n, k, layout, "bf16", "bf16", "f32", 5e-3)

    def test_types(self):
        for dtype, out, compute, tolerance in (("f16", "f16", "f32", 1e-3), ("f32", "f32", "f32", 1e-6), ("f32", "f32", "tf32", 1e-3),
                                               ("bf16", "f32", "f32", 1e-6)):
            self.multiply(128, 256, 512, "TN", dtype, out, compute, tolerance)
        if HOPPER:
            self.multiply(128, 256, 512, "TN", "e4m3", "bf16", "f32", 5e-3)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Timing(unittest.TestCase):
    def test_twice_the_work_takes_twice_the_time(self):
        source = """extern "C" __global__ void spin(float* x, int rounds) {
            float v = x[threadIdx.x]; for (int i = 0; i < rounds; i++) v = v * 1.0001f + 0.5f; x[threadIdx.x] = v; }"""
        kernel = tw.compile(source=source, entry="spin", arch=ARCH)
        x = torch.zeros(2, 1024, device="cuda")
        launches = {name: [kernel.prepare(grid=1, block=1024, args=[x[i], tw.i32(rounds)]) for i in range(2)]
                    for name, rounds in (("one", 20000), ("two", 40000), ("same", 20000))}
        result = tw.interleave({name: (lambda i, p=p: p[i]()) for name, p in launches.items()}, rotations=2, rounds=20)
        self.assertAlmostEqual(result["ratios"]["two/one"]["ratio"], 2.0, delta=0.1)
        self.assertAlmostEqual(result["ratios"]["same/one"]["ratio"], 1.0, delta=0.03)
        self.assertLessEqual(result["one"]["lo_us"], result["one"]["median_us"])
        self.assertLessEqual(result["one"]["median_us"], result["one"]["hi_us"])

    def test_check_sees_what_was_not_written(self):
        reference = torch.randn(100, 100, device="cuda", dtype=torch.float64)
        out = reference.to(torch.bfloat16)
        self.assertTrue(tw.check(out, reference, 5e-3)["ok"])
        out[3, 7] = float("nan")
        self.assertFalse(tw.check(out, reference, 5e-3)["ok"])
        self.assertFalse(tw.check(torch.zeros_like(reference), reference, 5e-3)["ok"])


if __name__ == "__main__":
    unittest.main()
