"""CuTe's own layouts on the CPU: every thread's every value of the emitted TiledMMA and TiledCopy is the element that the IR's distribution says."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
HEADERS = next(SOURCE.glob(".deps/venv/lib/python3*/site-packages/cutlass_library/source/include"), None)
CUDA = next((p for p in map(pathlib.Path, ("/usr/local/cuda/include", "/usr/include")) if (p / "cccl/cuda/std/utility").exists()), None)
pytestmark = [pytest.mark.skipif(not PROGRAM, reason="the program is not built"), pytest.mark.skipif(HEADERS is None, reason="CuTe's headers are not installed (scripts/setup.sh)"),
              pytest.mark.skipif(CUDA is None, reason="no CUDA headers on this machine"), pytest.mark.skipif(not shutil.which("g++"), reason="no g++")]


def ran(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120, check=True).stdout


def distribution(ir, fragment):
    """(tile shape, thread digits, value digits) of a fragment of the first kernel; a digit is (extent, dimension or -1, step)."""
    shape, threads, values = re.search(rf"fragment %{fragment}: \w+ \(([\d,]*)\) t\[(.*?)\] v\[(.*?)\]", ir).groups()

    def digits(text):
        out = []
        for word in text.split():
            extent, what = word.split(":")
            at = re.fullmatch(r"d(\d+)\*(\d+)", what)
            out.append((int(extent), int(at[1]), int(at[2])) if at else (int(extent), -1, 0))
        return out
    return [int(n) for n in shape.split(",")], digits(threads), digits(values)


def coordinate(digits, index, rank):
    out = [0] * rank
    for extent, dim, step in digits:
        if dim >= 0:
            out[dim] += index % extent * step
        index //= extent
    return out


def check(tmp_path, head, tensor, order, dist):
    """Compiles `tensor` (the thread's part of an identity tensor, over `t`) for this CPU and compares it with the distribution."""
    shape, threads, values = dist
    count = lambda digits: eval("*".join(str(d[0]) for d in digits) or "1")  # noqa: E731
    rows = []
    for t in range(count(threads)):
        for v in range(count(values)):
            a, b = coordinate(threads, t, len(shape)), coordinate(values, v, len(shape))
            rows.append([x + y for x, y in zip(a, b)])
    text = f"""#include <cute/tensor.hpp>
#include <cstdio>
using namespace cute;
{head}
static const int want[][{len(shape)}] = {{{",".join("{" + ",".join(map(str, r)) + "}" for r in rows)}}};
int main() {{
  int wrong = 0;
  auto order = {order};
  for (int t = 0; t < {count(threads)}; ++t) {{
    auto part = {tensor};
    for (int v = 0; v < {count(values)}; ++v) {{
      auto c = part(order(v));
      const int* w = want[t * {count(values)} + v];
      wrong += {" || ".join(f"int(get<{d}>(c)) != w[{d}]" for d in range(len(shape)))};
    }}
  }}
  std::printf("%d wrong of %d\\n", wrong, {len(rows)});
  return wrong != 0;
}}
"""
    (tmp_path / "host.cpp").write_text(text)
    built = subprocess.run(["g++", "-std=c++17", "-O0", "-w", "-I", HEADERS, "-I", CUDA, "-I", CUDA / "cccl", tmp_path / "host.cpp", "-o", tmp_path / "host"], capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr[-2000:]
    answer = subprocess.run([tmp_path / "host"], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize("file", ["gemm_sm80", "gemm_sm90"])
def test_accumulators_lie_where_the_ir_says(tmp_path, file):
    path = SOURCE / f"kernels/{file}.py"
    dist = distribution(ran("ir", path), "acc")
    text = ran("emit", path, "--to", "cute")
    product = re.search(r"using Product0 = .*;", text)[0]
    view = re.search(r"acc_as0 = make_tensor\(acc_\.data\(\), (Layout<.*>\{\})\);", text)
    order = view[1] if view and len(dist[2]) == view[1].split("Stride")[0].count("_") else "[](int v) { return v; }"
    shape = ", ".join(f"Int<{n}>" for n in dist[0])
    check(tmp_path, product, f"Product0{{}}.get_slice(t).partition_C(make_identity_tensor(Shape<{shape}>{{}}))", order, dist)


def test_copies_move_what_the_ir_says(tmp_path):
    path = SOURCE / "kernels/softmax.py"
    dist = distribution(ran("ir", path), "x")
    copy = re.search(r"using Copy = .*;", ran("emit", path, "--to", "cute"))[0]
    shape = ", ".join(f"Int<{n}>" for n in dist[0])
    check(tmp_path, copy, f"Copy{{}}.get_slice(t).partition_S(make_identity_tensor(Shape<{shape}>{{}}))", "[](int v) { return v; }", dist)
