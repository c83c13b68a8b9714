"""Candidates in CuTe through the gates: the compiler's page of types becomes a few lines; what is no kernel is refused before it."""
import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
HEADERS = next(SOURCE.glob(".deps/venv/lib/python3*/site-packages/cutlass_library/source/include"), None)
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

TASK = """name = "scale"
language = "cute"
computes = "Y[m, n] = 2.0 * X[m, n]"
[sizes]
M = 64
N = 4096
[tensors]
X = { dtype = "f32", dims = ["M", "N"] }
Y = { dtype = "f32", dims = ["M", "N"] }
"""

KERNEL = """#include <cute/tensor.hpp>
using namespace cute;
// launch scale_kernel
//   when N % 1024 == 0
//   grid N // 1024, M
//   threads 256
//   arguments X, Y, M, N
extern "C" __global__ void __launch_bounds__(256) scale_kernel(float const* X, float* Y, int M, int N) {
  Tensor x = make_tensor(make_gmem_ptr(X), make_shape(M, N), make_stride(int64_t(N), _1{}));
  Tensor y = make_tensor(make_gmem_ptr(Y), make_shape(M, N), make_stride(int64_t(N), _1{}));
  auto tiled = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_1, _256>>{}, Layout<Shape<_1, _4>>{});
  auto thread = tiled.get_slice(threadIdx.x);
  Tensor src = thread.partition_S(local_tile(x, Shape<_1, _1024>{}, make_coord(blockIdx.y, blockIdx.x)));
  Tensor dst = thread.partition_D(local_tile(y, Shape<_1, _1024>{}, make_coord(blockIdx.y, blockIdx.x)));
  Tensor r = make_fragment_like(src);
  copy(tiled, src, r);
  CUTE_UNROLL
  for (int i = 0; i < size(r); ++i) r(i) = 2.0f * r(i);
  copy(tiled, r, dst);
}
"""


def submit(tmp_path, text):
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "k.cu").write_text(text)
    ran = subprocess.run([PROGRAM, "submit", tmp_path / "task.toml", tmp_path / "k.cu", "--json", "--no-gpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    return json.loads(ran.stdout)


def gate(said, name):
    return next((g for g in said["gates"] if g["gate"] == name), None)


@pytest.mark.skipif(HEADERS is None, reason="CuTe's headers are not installed (scripts/setup.sh)")
def test_a_hand_written_kernel_passes_and_is_not_called_proved(tmp_path):
    said = submit(tmp_path, KERNEL)
    if gate(said, "compile")["passed"] is None:
        pytest.skip(gate(said, "compile")["detail"])
    assert said["passed"], said["feedback"]
    assert said["verdict"] == "not_proved" and gate(said, "verify")["passed"] is None
    assert said["resources"]["spill_bytes"] == 0 and "took" in gate(said, "compile")["detail"]


@pytest.mark.skipif(HEADERS is None, reason="CuTe's headers are not installed (scripts/setup.sh)")
def test_a_template_error_is_a_few_lines(tmp_path):
    # A vector of 32 bytes has no instruction; our check does not evaluate a size that a macro gives.
    said = submit(tmp_path, KERNEL.replace("copy(tiled, r, dst);", "copy(tiled, make_tensor<double>(shape(r)), dst);"))
    if gate(said, "compile") and gate(said, "compile")["passed"] is None:
        pytest.skip(gate(said, "compile")["detail"])
    assert not said["passed"] and said["failure_class"] == "type", said["message"]
    assert len(said["feedback"]) < 3000 and "k.cu" not in said["feedback"][:2]
    assert "scale.cu:" in said["feedback"] and "copy(tiled, make_tensor<double>" in said["feedback"], said["feedback"]


@pytest.mark.parametrize("text, failure, word", [
    (KERNEL.replace("#include <cute/tensor.hpp>", '#include "/etc/passwd"'), "syntax", "not allowed"),
    (KERNEL + "int main() { return 0; }\n", "syntax", "device code"),
    (KERNEL + "__device__ int calls = 0;\n", "syntax", "outlives"),
    (KERNEL.replace("//   grid N // 1024, M", "//   grid Q"), "specification", "grid"),
    (KERNEL.replace("N % 1024 == 0", "N % 8192 == 0"), "specification", "task's sizes"),
    (KERNEL.replace("arguments X, Y, M, N", "arguments X, Y, M, Z"), "specification", "'Z'"),
    (KERNEL.replace("// launch scale_kernel\n", ""), "syntax", "no launch"),
    (KERNEL.replace("Layout<Shape<_1, _4>>{});", "Layout<Shape<_4, _1>>{});"), "type", "TW4605"),
])
def test_refusals_before_the_compiler(tmp_path, text, failure, word):
    said = submit(tmp_path, text)
    assert not said["passed"] and said["failure_class"] == failure, (said["failure_class"], said["message"])
    assert word in said["feedback"] + said["message"], said["feedback"]
    assert gate(said, "compile") is None


PROGRAM_TEXT = """#include <cuda_fp16.h>
// program
//   buffer H f16 (M, N)
//   call halves X, H
//   call doubled H, Y
// launch halves_kernel
//   of halves
//   tensor A f32 (M, N)
//   tensor B out f16 (M, N)
//   grid M
//   threads 256
extern "C" __global__ void halves_kernel(float const* A, __half* B, int M, int N) {
  for (int i = threadIdx.x; i < N; i += 256) B[(long long)blockIdx.x * N + i] = __float2half(A[(long long)blockIdx.x * N + i]);
}
// launch doubled_kernel
//   of doubled
//   tensor A f16 (M, N)
//   tensor B out f32 (M, N)
//   grid M
//   threads 256
extern "C" __global__ void doubled_kernel(__half const* A, float* B, int M, int N) {
  for (int i = threadIdx.x; i < N; i += 256) B[(long long)blockIdx.x * N + i] = 2.0f * __half2float(A[(long long)blockIdx.x * N + i]);
}
"""


@pytest.mark.skipif(HEADERS is None, reason="CuTe's headers are not installed (scripts/setup.sh)")
def test_a_program_of_two_launches_passes_the_gates(tmp_path):
    said = submit(tmp_path, PROGRAM_TEXT)
    assert gate(said, "specification")["passed"], said
    assert gate(said, "check")["passed"], said
    compiled = gate(said, "compile")
    assert compiled and compiled["passed"] is not False, said  # None: no compiler library on this machine


def test_calls_of_a_program_are_checked(tmp_path):
    said = submit(tmp_path, PROGRAM_TEXT.replace("call doubled H, Y", "call doubled Y, H"))
    assert not gate(said, "specification")["passed"]
    assert "program" in said["message"], said
