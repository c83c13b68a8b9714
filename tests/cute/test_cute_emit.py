"""`tilewright emit --to cute`: text for the shipped kernels, refusals with a place, and nvcc takes a sample of it."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
HEADERS = next(SOURCE.glob(".deps/venv/lib/python3*/site-packages/cutlass_library/source/include"), None)
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def emit(*words):
    return subprocess.run([PROGRAM, "emit", *map(str, words)], capture_output=True, text=True, timeout=300)


def kernels_of(file, *words):
    return json.loads(emit(SOURCE / file, "--to", "cute", "--json", *words).stdout)["kernels"]


# Files of which every kernel has text.
@pytest.mark.parametrize("file", ["activations", "softmax", "gemm_sm80", "gemm_sm90", "vector_add", "transpose", "rope", "layernorm", "cumsum", "argmax", "quantize_sm90", "rmsnorm_sm90", "reductions_sm90", "dropout"])
def test_shipped_kernels_have_text(file):
    ran = emit(SOURCE / f"kernels/{file}.py", "--to", "cute", "--json")
    assert ran.returncode == 0, ran.stderr
    for kernel in json.loads(ran.stdout)["kernels"]:
        text = kernel["source"]
        assert f"{kernel['launcher']}(" in text and "#include <cute/tensor.hpp>" in text
        directives = {line for line in text.splitlines() if line.lstrip().startswith("#")}
        assert all(re.fullmatch(r"#include <(cute|cutlass)/[\w/]+\.(hpp|h)>|#pragma unroll \d+", d) for d in directives), directives


def test_the_words_of_cute_are_used():
    gemm = kernels_of("kernels/gemm_sm80.py")[0]["source"]
    for word in ("TiledMMA<MMA_Atom<SM80_16x8x16_F32BF16BF16F32_TN>", "make_tiled_copy_A", "SM75_U32x4_LDSM_N", "local_tile", "cp_async_fence", "composition(Swizzle<2, 3, 3>{}", "copy_if(Copy{}, inside, src, dst)"):
        assert word in gemm, word
    hopper = kernels_of("kernels/gemm_sm90.py")[0]["source"]
    attention = kernels_of("kernels/attention_sm90.py", "--kernel", "attention")[0]["source"]
    for word in ("_RS<GMMA::Major::K", "make_layout(Layout<_1, _0>{}, Layout<_1, _0>{}, layout<0>(tile), layout<1>(tile))", "warpgroup_fence_operand(s_)", "tw::put_pair", "__all_sync("):
        assert word in attention, word
    cluster = kernels_of("kernels/gemm_cluster_sm90.py")[0]["source"]
    for word in ("SM90_TMA_LOAD_MULTICAST", "cudaLaunchAttributeClusterDimension", "ClusterBarrier::arrive(", "cluster_wait()"):
        assert word in cluster, word
    for word in ("SM90_TMA_LOAD", "SM90_64x256x16_F32BF16BF16_SS", "warpgroup_wait<1>", "wait_barrier(ring_full_[", "SM90_U32x4_STSM_N", "warpgroup_reg_alloc<232>"):
        assert word in hopper, word


def test_what_the_machine_needs_beside_the_tile_form_is_there():
    """Fences before the copy engine writes again what ordinary loads have read: the tile form has none, the device form and this text do."""
    note = "what was read may be overwritten by the copy engine"
    cute = kernels_of("kernels/layernorm_sm90.py")
    cuda = json.loads(emit(SOURCE / "kernels/layernorm_sm90.py", "--to", "cuda", "--json").stdout)["kernels"]
    fences = [(a["source"].count(note), b["source"].count(note)) for a, b in zip(cute, cuda) if "source" in a]
    assert sum(a for a, _ in fences) > 0 and all(a == b for a, b in fences), fences


def test_blocks_of_a_cluster_read_each_other():
    wide = [k["source"] for k in kernels_of("kernels/softmax_sm90.py", "--kernel", "softmax") if "source" in k and "tw::of_block(" in k["source"]]
    assert wide and all("tw::cluster_arrive();" in text and "mapa.u64" in text for text in wide)


def test_rows_that_an_index_tensor_names():
    """Loads, stores, copies and additions: a value's row is the one that the fragment of indices holds, and its test asks for both ends at once."""
    texts = {k["launcher"]: k["source"] for file in ("cache_update_sm90", "scatter_add", "grouped_gemm_sm80") for k in kernels_of(f"kernels/{file}.py")}
    assert all("tw::gathered(" in text and "uint32_t(" in text for name, text in texts.items() if "update" not in name), [name for name, text in texts.items() if "tw::gathered(" not in text]
    permuted = next(text for name, text in texts.items() if name.startswith("permute_rows"))
    assert "tw::at_one_row<0>(Y_)" in permuted and "tw::place_in_row<0, false>(places(v), rows(v))" in permuted
    assert any("tw::copy_inside<" in text for text in texts.values()) and any("atomicAdd(&in_rows(v)" in text for text in texts.values())


def test_products_of_every_width():
    """CuTe declares products of 160 columns and the like only when it is asked to, before its first header."""
    wide = [k["source"] for k in kernels_of("kernels/grouped_gemm_sm90.py") if "SM90_64x160x16" in k["source"]]
    assert wide and all(text.index("#define CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED") < text.index("#include <cute/tensor.hpp>") for text in wide)
    assert not any("EXTENDED" in k["source"] for k in kernels_of("kernels/gemm_sm90.py"))


def test_what_has_no_text_is_refused_with_its_place():
    ran = emit(SOURCE / "kernels/transpose_sm90.py", "--to", "cute")
    assert ran.returncode == 1 and re.search(r"transpose_sm90\.py:\d+: .*--to cute has no text for copies in whole vectors from rows", ran.stderr), ran.stderr
    # The others of a file are there all the same.
    softmax = kernels_of("kernels/softmax_sm90.py", "--kernel", "softmax")
    assert any("error" in k for k in softmax) and any("source" in k for k in softmax)


def test_a_folder_with_a_cmake_file(tmp_path):
    assert emit(SOURCE / "kernels/softmax.py", "--to", "cute", "-o", tmp_path / "out").returncode == 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"CMakeLists.txt", "softmax_1.cu", "softmax_2.cu"}
    assert "softmax_1.cu softmax_2.cu" in (tmp_path / "out/CMakeLists.txt").read_text()


def test_names_of_a_user_become_no_code(tmp_path):
    text = (SOURCE / "kernels/vector_add.py").read_text()
    assert "def vector_add" in text
    (tmp_path / "double.py").write_text(text.replace("def vector_add", "def make_tensor"))
    source = kernels_of(tmp_path / "double.py")[0]["source"]
    assert "make_tensor_kernel" in source and "make_tensor_launch" in source


# Our own check reads our own text, and finds nothing wrong with it.
@pytest.mark.parametrize("file", ["softmax", "gemm_sm80", "transpose", "gemm_sm90"])
def test_emitted_text_passes_the_check_of_cute_text(tmp_path, file):
    for i, kernel in enumerate(kernels_of(f"kernels/{file}.py")):
        (tmp_path / f"{i}.cu").write_text(kernel["source"])
        ran = subprocess.run([PROGRAM, "check", tmp_path / f"{i}.cu"], capture_output=True, text=True, timeout=120)
        assert ran.returncode == 3, ran.stdout


# nvcc takes 5 to 15 seconds a kernel, so CI has a sample; TILEWRIGHT_COMPILE_ALL=1 takes every kernel of these files.
@pytest.mark.skipif(HEADERS is None, reason="CuTe's headers are not installed (scripts/setup.sh)")
@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("file, arch", [("softmax", "sm_80"), ("gemm_sm80", "sm_80"), ("gemm_sm90", "sm_90a"), ("rmsnorm_sm90", "sm_90a"), ("gemm_cluster_sm90", "sm_90a"),
                                        ("cumsum", "sm_80"), ("gemm_fp8_sm90", "sm_90a"), ("gemm_int8_tf32_sm90", "sm_90a"), ("quantize_sm90", "sm_90a")])
def test_nvcc_takes_it(tmp_path, file, arch):
    kernels = [k for k in kernels_of(f"kernels/{file}.py") if "source" in k]
    for i, kernel in enumerate(kernels if os.environ.get("TILEWRIGHT_COMPILE_ALL") else kernels[:1]):
        source = tmp_path / f"{i}.cu"
        source.write_text(kernel["source"])
        ran = subprocess.run([NVCC, "-std=c++17", f"-arch={arch}", "-cubin", "--expt-relaxed-constexpr", "-Xptxas", "-v", "-I", HEADERS, "-o", tmp_path / "k.cubin", source], capture_output=True, text=True, timeout=1200)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "0 bytes spill stores" in ran.stderr and "serialized" not in ran.stderr, ran.stderr
