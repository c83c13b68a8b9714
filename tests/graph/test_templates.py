"""Templates for the matrix unit of Hopper at small sizes: `--large 1` takes them whatever the size. Each is proved, and right on the emulator."""
import json
import os
import random
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import one_graph  # noqa: E402
from one_graph import PROGRAM, graph, leaf, node  # noqa: E402


def generated(made, folder, least_kernels, tolerance, *more):
    text, plan, report = one_graph.generated(made, folder, tolerance, "--large", "1", *more)
    assert len(report["kernels"]) >= least_kernels
    return text, plan


def product(a_turned, b_turned, m, n, k, batch=None, after=()):
    z = [batch] if batch else []
    order = [0, 2, 1] if batch else [1, 0]
    nodes, a, b = [], "a", "b"
    if a_turned:
        nodes.append(node("at", "permute", ["a"], z + [m, k], order=order))
        a = "at"
    if b_turned:
        nodes.append(node("bt", "permute", ["b"], z + [k, n], order=order))
        b = "bt"
    nodes.append(node("y", "matmul", [a, b], z + [m, n]))
    last = "y"
    for i, op in enumerate(after):
        nodes.append(node(f"e{i}", op, [last], z + [m, n]))
        last = f"e{i}"
    return graph([leaf("a", z + ([k, m] if a_turned else [m, k])), leaf("b", z + ([n, k] if b_turned else [k, n]))], nodes, last)


@pytest.mark.parametrize("a_turned, b_turned, m, n, k, batch, after", [
    (False, True, 70, 90, 100, None, ("relu",)), (False, False, 70, 90, 72, None, ()), (True, True, 70, 88, 72, None, ("tanh",)),
    (True, False, 140, 130, 33, None, ()), (False, False, 70, 90, 40, 3, ()), (False, True, 257, 129, 96, None, ("gelu", "square")),
    (False, True, 261, 132, 40, None, ("gelu",)), (False, False, 70, 36, 40, 3, ("relu",)), (True, False, 300, 260, 64, 2, ()),
])
def test_product(a_turned, b_turned, m, n, k, batch, after, tmp_path):
    """f32 operands as two f16 parts each: the error is f32's own (tf32 alone would leave some 5e-4)."""
    text, plan = generated(product(a_turned, b_turned, m, n, k, batch, after), tmp_path, 3, 2e-6)
    assert len(plan["launches"]) == 3  # one for each operand, which is read once, and the product
    assert text.count("tw.wgmma(part") == (6 if m > 128 else 3)
    assert ("tw.tma_store(Y[" in text) == (n % 4 == 0)  # whole vectors leave through shared memory
    assert {v["dtype"] for v in plan["buffers"].values()} == {"f16", "f32"}


@pytest.mark.parametrize("a_turned, b_turned, k, launches", [(False, True, 2500, 3), (False, True, 2051, 3), (False, False, 1100, 3), (True, True, 1027, 3), (False, False, 2304, 4), (True, False, 2049, 5)])
def test_parts_of_long_rows(a_turned, b_turned, k, launches, tmp_path):
    """Rows of up to 16384 elements and columns of up to 2048 stay in registers; longer columns are read by two launches."""
    text, plan = generated(product(a_turned, b_turned, 66, 12, k, 2), tmp_path, 3, 2e-6)
    assert len(plan["launches"]) == launches
    made = [kernel for kernel in text.split("@tw.program")[0].split("@tw.kernel") if "_parts(" in kernel]
    assert len(made) == 2 and all(kernel.count("tw.load(X[") == 1 for kernel in made)


def test_rows_that_no_block_holds_are_read_twice_by_one_launch(tmp_path):
    (tmp_path / "graph.json").write_text(json.dumps(product(False, True, 2048, 2048, 20001)))  # too large for the emulator
    done = subprocess.run([PROGRAM, "generate", str(tmp_path / "graph.json"), "--json", "-o", str(tmp_path / "out")], capture_output=True, text=True, timeout=300)
    assert json.loads(done.stdout)["proved"], done.stdout[-2000:]
    made = [kernel for kernel in (tmp_path / "out" / "kernels.py").read_text().split("@tw.program")[0].split("@tw.kernel") if "_parts(" in kernel]
    assert len(made) == 2 and all(kernel.count("tw.load(X[") == 2 for kernel in made)


@pytest.mark.parametrize("keys, fused", [(72, True), (256, True), (71, False)])
@pytest.mark.parametrize("causal", [False, True])
def test_probabilities_are_stored_in_parts(keys, fused, causal, tmp_path):
    """Attention as two products, where heads are too wide for one kernel: the softmax between them writes the parts that the second one takes, where rows are whole vectors."""
    shape, other = [2, 2, keys if causal else 70, 136], [2, 2, keys, 136]
    made = graph([leaf("q", shape), leaf("k", other), leaf("v", other)], [node("y", "attention", ["q", "k", "v"], shape, scale=0.2, causal=causal)], "y")
    text, plan = generated(made, tmp_path, 6, 4e-6)
    assert ("* 16384.0" in text) == fused
    assert len(plan["launches"]) == (6 if fused else 7)


def test_probabilities_that_are_read_elsewhere_are_stored(tmp_path):
    made = graph([leaf("s", [2, 70, 72]), leaf("v", [2, 72, 40])], [node("p", "softmax", ["s"], [2, 70, 72], dim=2), node("y", "matmul", ["p", "v"], [2, 70, 40])], "y")
    text, plan = generated(made, tmp_path, 3, 4e-6)
    assert "* 16384.0" in text and len(plan["launches"]) == 3
    made["outputs"] = ["y", "p"]
    text, plan = generated(made, tmp_path, 4, 4e-6)
    assert "* 16384.0" not in text and len(plan["launches"]) == 4


def test_a_row_of_zeros_and_a_row_of_tiny_numbers(tmp_path):
    """The scale of a row of zeros is finite, and what is 2^-20 of its row's largest element keeps its digits."""
    made = product(False, True, 66, 70, 64)
    made["nodes"] = [node("none", "mul", ["a", 0.0], [66, 64]), node("tiny", "mul", ["a", 1e-30], [66, 64]), node("both", "add", ["none", "tiny"], [66, 64])] + made["nodes"]
    next(n for n in made["nodes"] if n["op"] == "matmul")["inputs"][0] = "both"
    generated(made, tmp_path, 3, 2e-6)


@pytest.mark.parametrize("a_turned, b_turned, m, n, k", [(False, False, 36, 44, 2052), (False, True, 33, 70, 2048), (True, True, 20, 135, 2076), (True, False, 132, 24, 2100)])
def test_long_sum_of_few_results(a_turned, b_turned, m, n, k, tmp_path):
    """Parts of the sum are blocks; operands as two tf32 parts each, taken apart on the way: the error is f32's own."""
    text, plan = generated(product(a_turned, b_turned, m, n, k), tmp_path, 1, 2e-6)
    assert len(plan["launches"]) == 1 and "part_ring" in text and "tw.atomic_add(" in text


def test_what_follows_a_long_sum_is_a_kernel_of_its_own(tmp_path):
    text, plan = generated(product(False, True, 30, 28, 2048, after=("tanh",)), tmp_path, 2, 2e-5)
    assert "part_ring" in text and len(plan["launches"]) == 2


def test_product_of_large_and_small_numbers_alike(tmp_path):
    """What a row is scaled by is its own: elements of 1e-20 next to rows of 1e20 keep their digits."""
    made = product(False, True, 66, 70, 64)
    made["nodes"] = [node("row", "cumsum", ["a"], [66, 64], dim=0), node("big", "exp", ["row"], [66, 64])] + made["nodes"]
    next(n for n in made["nodes"] if n["op"] == "matmul")["inputs"][0] = "big"
    generated(made, tmp_path, 3, 2e-5)  # the exponentials of sums of up to 66 f32 numbers have an error of their own


def convolution(x, results, kernel, after=(), bias=False, **attributes):
    dims = len(kernel)
    a = dict(stride=[1] * dims, padding=[0] * dims, dilation=[1] * dims, groups=1, transposed=False, output_padding=[0] * dims)
    a.update(attributes)
    if a["transposed"]:
        out = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in zip(x[2:], kernel, a["stride"], a["padding"], a["dilation"], a["output_padding"])]
    else:
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(x[2:], kernel, a["stride"], a["padding"], a["dilation"])]
    out = [x[0], results] + out
    weight = [x[1], results] if a["transposed"] else [results, x[1]]
    inputs = [leaf("x", x), leaf("w", weight + list(kernel))] + ([leaf("b", [results])] if bias else [])
    nodes = [node("y", "conv", [i["name"] for i in inputs], out, **a)]
    last = "y"
    for i, op in enumerate(after):
        nodes.append(node(f"e{i}", op, [last], out))
        last = f"e{i}"
    return graph(inputs, nodes, last)


CONVOLUTIONS = [
    convolution([2, 7, 13, 70], 20, [3, 3], ("relu",), bias=True),
    convolution([2, 32, 9, 66], 24, [3, 3], bias=True, padding=[1, 1]),
    convolution([2, 5, 300], 8, [3]),
    convolution([2, 6, 310], 8, [3], stride=[3], dilation=[4]),
    convolution([1, 3, 5, 7, 34], 16, [3, 3, 3]),
    convolution([1, 8, 4, 6, 62], 16, [3, 3, 3], bias=True, padding=[1, 1, 1]),
    convolution([2, 3, 31, 67], 16, [5, 5], stride=[2, 2], padding=[2, 2]),
    convolution([1, 8, 20, 80], 16, [3, 5], dilation=[2, 3], padding=[0, 2]),
    convolution([1, 3, 20, 20, 10], 16, [3, 3, 1]),
    convolution([1, 40, 6, 70], 136, [3, 3], ("gelu",)),
    convolution([2, 8, 12, 64], 16, [3, 3], transposed=True),
    convolution([2, 8, 12, 64], 16, [3, 7], transposed=True, padding=[1, 3]),
    convolution([1, 8, 4, 6, 30], 16, [3, 3, 3], transposed=True),
    convolution([1, 8, 9, 33], 16, [3, 3], ("tanh",), transposed=True, stride=[2, 2], padding=[1, 1], output_padding=[1, 1]),
    convolution([1, 8, 3, 5, 33], 16, [3, 3, 3], transposed=True, stride=[2, 2, 2], padding=[1, 1, 1]),
    convolution([1, 8, 5, 66], 16, [4, 4], bias=True, transposed=True, stride=[2, 2], padding=[1, 1]),
    convolution([1, 16, 4, 131], 40, [3, 3], ("gelu",), bias=True),
    convolution([1, 8, 6, 300], 32, [3, 3]),
]


@pytest.mark.parametrize("i", range(len(CONVOLUTIONS)))
def test_convolution(i, tmp_path):
    """Operands are rounded to tf32, as `computes` says: 2^-11 each, more where sums cancel."""
    text, plan = generated(CONVOLUTIONS[i], tmp_path, 3, 8e-3)
    assert "tw.wgmma(acc0" in text and any(v["dtype"] == "tf32" for v in plan["buffers"].values())
    # Rows of positions leave through shared memory, the remainders of a strided transposed convolution as lines.
    attributes = CONVOLUTIONS[i]["nodes"][0]["attributes"]
    lines = attributes["transposed"] and max(attributes["stride"]) > 1
    assert f"y = tw.load({'line' if lines else 'so'}[w" in text


@pytest.mark.parametrize("i", [0, 1, 3, 4, 10, 13])
def test_convolution_of_two_parts(i, tmp_path):
    """`--tf32 none`: two tf32 numbers for each, three of their four products; the error is f32's own."""
    text, plan = generated(CONVOLUTIONS[i], tmp_path, 5, 1e-5, "--tf32", "none")  # the matrix unit cuts off what it adds, up to 300 terms here
    assert "sx_low" in text and any(b.endswith("_low") for b in plan["buffers"])


POINTWISE = [
    (convolution([2, 64, 10, 30], 128, [1, 1], bias=True), 8e-3), (convolution([1, 32, 7, 20], 70, [1, 1], ("gelu",)), 8e-3), (convolution([2, 128, 132], 24, [1], tf32="even"), 8e-3),
    (convolution([1, 24, 6, 26], 130, [1, 1], ("relu",), tf32=False), 2e-6), (convolution([1, 64, 5, 7], 40, [1, 1]), 8e-3),
]


@pytest.mark.parametrize("i", range(len(POINTWISE)))
def test_convolution_of_one_tap(i, tmp_path):
    """One buffer for the operands and for what is stored; vectors along the positions, where they divide by four."""
    made, tolerance = POINTWISE[i]
    text, _ = generated(made, tmp_path, 1, tolerance)
    positions = 1
    for n in made["nodes"][0]["shape"][2:]:
        positions *= n
    assert ("tw.overlay(arena" in text) == (positions % 4 == 0)


@pytest.mark.parametrize("op, shape, tile", [("sum", [50, 32, 263], "(16, 128)"), ("amax", [50, 48, 257], "(16, 128)"), ("amin", [50, 24, 300], "(8, 256)"), ("mean", [70, 16, 256], "(16, 128)")])
def test_rows_folded_of_long_lines(op, shape, tile, tmp_path):
    """Tiles of several rows; what lies beyond the last column is filled in by the load, and folded without a mask."""
    text, _ = generated(graph([leaf("x", shape)], [node("y", op, ["x"], [shape[0], shape[2]], dims=[1], keepdim=False)], "y"), tmp_path, 1, 1e-5)
    assert tile in text and "tw.where" not in text


@pytest.mark.parametrize("op, shape, out, attributes", [
    ("batch_norm", [128, 70], [128, 70], {"eps": 1e-5}), ("amax", [192, 45], [45], {"dims": [0], "keepdim": False}),
    ("softmax", [64, 33], [64, 33], {"dim": 0}), ("sum", [3, 128, 40], [3, 40], {"dims": [1], "keepdim": False}),
])
def test_rows_folded_many_at_a_time(op, shape, out, attributes, tmp_path):
    text, _ = generated(graph([leaf("x", shape)], [node("y", op, ["x"], out, **attributes)], "y"), tmp_path, 1, 1e-5)
    assert "(64, 32)" in text


@pytest.mark.parametrize("channels, after", [(32, ()), (128, ("add", "mul", "sigmoid")), (256, ("add", "tanh")), (48, ("add", "mul"))])
@pytest.mark.parametrize("side", [127, 192])
def test_softmax_over_channels(channels, after, side, tmp_path):
    """With what is done to each element after it one kernel, for any number of positions; 2^n channels up to 256 are read once."""
    shape = [1, channels, side, side]
    nodes, last = [node("y", "softmax", ["x"], shape, dim=1)], "y"
    for op in after:
        nodes.append(node(f"after_{op}", op, [last] + {"add": ["b"], "mul": [2.0]}.get(op, []), shape))
        last = f"after_{op}"
    made = graph([leaf("x", shape), leaf("b", [channels, 1, 1])], nodes, last)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json", "-o", str(tmp_path / "out")], capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    assert report["proved"] and len(report["kernels"]) == 1, done.stdout[-2000:]
    text = (tmp_path / "out" / "kernels.py").read_text()
    assert text.count("tw.load(T_x") == (1 if channels & (channels - 1) == 0 and side == 192 else 2)


@pytest.mark.parametrize("channels, side", [(128, 23), (16, 25), (40, 9), (64, 184)])  # the last has enough positions that its columns stay in registers
def test_softmax_over_channels_on_the_emulator(channels, side, tmp_path):
    shape = [1, channels, side, side]
    nodes = [node("y", "softmax", ["x"], shape, dim=1), node("z", "add", ["y", "b"], shape), node("s", "sigmoid", ["z"], shape)]
    generated(graph([leaf("x", shape), leaf("b", [channels, 1, 1])], nodes, "s"), tmp_path, 1, 1e-5)


@pytest.mark.parametrize("seed", range(int(os.environ.get("TILEWRIGHT_GRAPHS", "10")) // 2))
def test_drawn(seed, tmp_path):
    """Shapes and attributes by chance; whether a template takes them is its own affair, the result must be right and proved."""
    r = random.Random(f"templates/{seed}")
    if seed % 2 == 0:
        made, tolerance = product(r.random() < 0.5, r.random() < 0.5, r.randint(1, 200), r.randint(1, 200), r.randint(1, 150), r.choice([None, None, 2])), 2e-6
    else:
        dims, transposed = r.randint(1, 3), r.random() < 0.5
        kernel = [r.randint(1, 4) for _ in range(dims)]
        x = [r.randint(1, 2), r.randint(2, 20)] + [r.randint(4, 9) for _ in range(dims - 1)] + [r.randint(65, 150)]
        attributes = {"padding": [r.randint(0, k - 1) for k in kernel], "dilation": [r.randint(1, 2) for _ in kernel], "stride": [r.randint(1, 2) for _ in kernel]}
        made, tolerance = convolution(x, r.randint(8, 70), kernel, ("relu",), transposed=transposed, **attributes), 1e-2
        if min(made["nodes"][0]["shape"]) < 1:
            pytest.skip("the window is larger than its input")
    generated(made, tmp_path, 1, tolerance)


@pytest.mark.parametrize("op, shape, dims, attributes", [
    ("group_norm", [2, 6, 5, 41], [1, 2, 3], {"groups": 3}), ("instance_norm", [3, 4, 300], [2], {}), ("layer_norm", [5, 70], [1], {"dims": 1}),
])
def test_sums_of_centred_values_are_f64(op, shape, dims, attributes, tmp_path):
    """The mean of what was normalised is zero but for rounding: with f32 numbers between, some 1e-8 would be left of it."""
    channels = shape[1]
    inputs = [leaf("x", shape)] + ([leaf("w", [channels])] if op == "group_norm" else [])
    out = [n for d, n in enumerate(shape) if d not in dims]
    nodes = [node("far", "add", ["x", 100.0], shape), node("y", op, ["far"] + [i["name"] for i in inputs[1:]], shape, eps=1e-5, **attributes), node("z", "mean", ["y"], out, dims=dims, keepdim=False),
             node("again", "mul", ["z", 1e9], out), node("one", "add", ["again", 1.0], out)]
    text, _ = generated(graph(inputs, nodes, "one"), tmp_path, 1, 1e-2)
    assert "tw.full(f64" in text or ".to(f64)" in text


def test_other_sums_after_a_norm_stay_f32(tmp_path):
    """What is added up is not what the mean was taken of: nothing cancels."""
    nodes = [node("y", "instance_norm", ["x"], [3, 4, 70], eps=1e-5), node("z", "sum", ["y"], [3, 70], dims=[1], keepdim=False)]
    text, _ = generated(graph([leaf("x", [3, 4, 70])], nodes, "z"), tmp_path, 1, 1e-5)
    assert "(f64" not in text


def test_rows_of_a_matrix_by_one_vector(tmp_path):
    """Blocks have four rows, so that the vector is read once for these."""
    text, _ = generated(graph([leaf("a", [1056, 8200]), leaf("b", [8200])], [node("p", "mul", ["a", "b"], [1056, 8200]), node("y", "sum", ["p"], [1056], dims=[1], keepdim=False)], "y"), tmp_path, 1, 1e-5)
    assert "tw.full(f32, (4, 1024), 0.0)" in text


@pytest.mark.parametrize("a_turned, b_turned, m, n, k, batch, after, dtype", [
    (False, True, 70, 96, 104, None, (), "bf16"), (False, False, 200, 136, 72, None, ("relu",), "f16"), (True, True, 72, 88, 64, None, (), "f16"),
    (True, False, 136, 264, 40, 2, ("gelu",), "f16"), (False, True, 130, 300, 64, None, ("tanh",), "f16"), (False, True, 70, 90, 72, None, ("relu", "square"), "f16"),
])
def test_product_of_16_bit_numbers(a_turned, b_turned, m, n, k, batch, after, dtype, tmp_path):
    """Operands as they lie, each way round; whole vectors of results leave through shared memory."""
    made = product(a_turned, b_turned, m, n, k, batch, after)
    for about in made["inputs"] + made["nodes"]:
        about["dtype"] = dtype
    text, plan = generated(made, tmp_path, 1, 0.02)
    assert len(plan["launches"]) == 1 and text.count("tw.wgmma(") == 1
    assert ("tw.tma_store(Y[" in text) == (n % 8 == 0)
