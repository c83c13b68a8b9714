"""Operations that models need beside those of test_ops.py, on torch's CPU tensors (the emulator) against torch in f32: narrow numbers, variants of attention, caches, gradients, Adam."""
import math
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.ops as ops  # noqa: E402
from tilewright import _dispatch  # noqa: E402

F = torch.nn.functional
generator = torch.Generator().manual_seed(7)


def bf(*shape):
    return torch.randn(*shape, generator=generator).bfloat16()


def fp8(*shape):
    return torch.randn(*shape, generator=generator).to(torch.float8_e4m3fn)


def close(got, want, allowed=8e-3):  # two roundings to bf16 are 4e-3 of an element at most
    assert got.shape == want.shape
    assert float((got.float() - want.float()).norm()) <= allowed * max(float(want.float().norm()), 1e-30)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("m, n, k", [(20, 24, 64), (1, 8, 16)])
def test_fp8_products(fast, m, n, k):
    a, b, rows, columns, one = fp8(m, k), fp8(n, k), torch.rand(m) + 0.5, torch.rand(n) + 0.5, torch.tensor(0.7)
    exact = a.float() @ b.float().t()
    close(ops.matmul_fp8(a, b, one, one, fast=fast, strict=True), exact * 0.49)
    close(ops.matmul_fp8(a, b, rows, columns, fast=fast, strict=True), exact * rows[:, None] * columns)


def test_fp8_by_blocks_of_what_was_quantised():
    x, b, scale_b = bf(6, 256), fp8(128, 256), torch.rand(1, 2) + 0.5
    q, scale = ops.quantize_fp8_blocks(x, strict=True)
    as_read = q.float().reshape(6, 2, 128) * scale.t()[:, :, None]
    close(as_read, x.reshape(6, 2, 128), 4e-2)  # e4m3 has three bits behind the point: 2^-4 of an element at most
    weight = (b.float().reshape(1, 128, 2, 128) * scale_b[:, None, :, None]).reshape(128, 256)
    close(ops.matmul_fp8_blocks(q, b, scale, scale_b, strict=True), as_read.reshape(6, 256) @ weight.t())
    rows, scales = ops.quantize_fp8(x, strict=True)
    close(rows.float() * scales[:, None], x, 4e-2)


@pytest.mark.parametrize("precision, most", [("f32", 1e-6), ("tf32", 1e-6), ("tf32_fast", 1e-5)])
def test_products_of_f32(precision, most):
    a, b = (torch.randn(n, 40, generator=generator) for n in (9, 12))
    if precision != "f32":
        a, b = ((x.view(torch.int32) & -8192).view(torch.float32) for x in (a, b))  # numbers that tf32 has
    exact = a.double() @ b.double().t()
    assert ((ops.matmul_f32(a, b, precision=precision, strict=True).double() - exact).abs().max() / exact.abs().max()) < most


def test_int8_is_exact_and_scaled():
    a, b = (torch.randint(-128, 128, (n, 64), dtype=torch.int8, generator=generator) for n in (9, 16))
    exact = (a.double() @ b.double().t())
    assert (ops.matmul_int8(a, b, strict=True) == exact).all()
    rows, columns = torch.rand(9), torch.rand(16)
    close(ops.matmul_int8(a, b, rows, columns, strict=True), exact.float() * rows[:, None] * columns)


def test_weights_of_four_bits():
    x, weight, scales = bf(2, 3, 128), torch.randint(0, 256, (16, 1, 64), dtype=torch.uint8, generator=generator), (torch.rand(1, 16) + 0.5).bfloat16()
    whole = ((torch.cat((weight % 16, weight // 16), -1).float() - 8) * scales.t().float()[:, :, None]).bfloat16().float().reshape(16, 128)
    close(ops.linear_w4(x, weight, scales, strict=True), x.float() @ whole.t())


def reference(q, k, v, seen, change=lambda s, d: s):
    group = q.shape[-3] // k.shape[-3]
    k, v = (t.float().repeat_interleave(group, -3) for t in (k, v))
    distance = torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])[None, :]
    scores = change(q.float() @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), distance)
    return scores.masked_fill(~seen(distance), -math.inf).softmax(-1) @ v


def test_variants_of_attention():
    q, k, v, slopes = bf(1, 4, 150, 64), bf(1, 2, 150, 64), bf(1, 2, 150, 64), torch.tensor([0.5, 0.25, 0.1, 0.05])
    causal = lambda d: d >= 0  # noqa: E731
    close(ops.attention_variant(q, k, v, window=128, strict=True), reference(q, k, v, lambda d: (d >= 0) & (d < 128)))
    close(ops.attention_variant(q, k, v, softcap=2.0, strict=True), reference(q, k, v, causal, lambda s, d: 2 * torch.tanh(s / 2)))
    close(ops.attention_variant(q, k, v, slopes, strict=True), reference(q, k, v, causal, lambda s, d: s - slopes[:, None, None] * d))
    with pytest.raises(tilewright.TilewrightError, match="windows of"):
        ops.attention_variant(q, k, v, window=100, strict=True)


@pytest.mark.parametrize("ends", [[10, 11, 140], [140], [0, 140, 140]])
def test_packed_documents(ends):
    q, k, v, ends = bf(2, 140, 64), bf(1, 140, 64), bf(1, 140, 64), torch.tensor(ends)
    document = torch.searchsorted(ends, torch.arange(140), right=True)
    close(ops.attention_packed(q, k, v, ends, strict=True), reference(q, k, v, lambda d: (d >= 0) & (document[:, None] == document[None, :])))


def one_token(q, k, v, lengths):
    return reference(q[:, :, None], k, v, lambda d: torch.arange(k.shape[2])[None, None, None, :] < lengths[:, None, None, None])[:, :, 0]


@pytest.mark.parametrize("keys", [70, 1100])  # one launch; parts that are joined
def test_decoding(keys):
    q, k, v, lengths = bf(2, 4, 64), bf(2, 2, keys, 64), bf(2, 2, keys, 64), torch.tensor([keys, 33])
    close(ops.decode(q, k, v, lengths, strict=True), one_token(q, k, v, lengths))


@pytest.mark.parametrize("pages", [2, 9])  # one launch; parts that are joined
def test_decoding_from_pages(pages):
    q, k, v, lengths = bf(2, 3, 64), bf(5, 1, 128, 64), bf(5, 1, 128, 64), torch.tensor([128 * pages - 56, 33])
    table = torch.tensor([[2, 4, 1, 0, 3, 3, 2, 0, 4], [0, 1, 0, 0, 0, 0, 0, 0, 0]])[:, :pages]
    whole = [t[table].permute(0, 2, 1, 3, 4).reshape(2, 1, 128 * pages, 64) for t in (k, v)]
    close(ops.decode_paged(q, k, v, table, lengths, strict=True), one_token(q, *whole, lengths))


def gradients(ours, theirs, inputs, grad, allowed=8e-3):
    mine = [t.clone().requires_grad_() for t in inputs]
    exact = [t.float().clone().requires_grad_() for t in inputs]
    ours(*mine).backward(grad)
    theirs(*exact).backward(grad.float())
    for a, b in zip(mine, exact):
        close(a.grad, b.grad, allowed)


@pytest.mark.parametrize("rows, n", [(5, 64), (1, 1032)])
def test_gradients_of_norms(rows, n):
    x, w, b, grad = bf(rows, n), bf(n), bf(n), bf(rows, n)
    gradients(lambda x, w: ops.rmsnorm(x, w, 1e-5), lambda x, w: F.rms_norm(x, (n,), w, 1e-5), (x, w), grad)
    gradients(lambda x, w, b: ops.layernorm(x, w, b), lambda x, w, b: F.layer_norm(x, (n,), w, b), (x, w, b), grad)
    gradients(lambda x: ops.rmsnorm(x), lambda x: F.rms_norm(x, (n,), eps=1e-6), (x,), grad)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length, deterministic", [(72, False), (72, True), (70, False)])  # of 70 queries TMA does not take the rows of sums
def test_gradients_of_attention(causal, length, deterministic, monkeypatch):
    q, k, v = bf(1, 2, length, 64), bf(1, 1, length, 64), bf(1, 1, length, 64)  # two heads share keys and values
    asked = []
    run = _dispatch.run
    monkeypatch.setattr(_dispatch, "run", lambda operation, *rest: (asked.append(operation), run(operation, *rest))[1])
    torch.use_deterministic_algorithms(deterministic)
    try:
        gradients(lambda *t: ops.attention(*t, causal=causal), lambda *t: F.scaled_dot_product_attention(*t, is_causal=causal, enable_gqa=True), (q, k, v), bf(1, 2, length, 64), 1.2e-2)
    finally:
        torch.use_deterministic_algorithms(False)
    assert asked[-1] == ("attention_causal_backward" if causal else "attention_backward") + ("_in_order" if deterministic else "")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradients_of_cross_entropy(reduction):
    logits, target = torch.randn(6, 40, generator=generator), torch.tensor([1, 5, -100, 39, 0, 7])
    grad = torch.rand(6) if reduction == "none" else torch.tensor(1.5)
    gradients(lambda x: ops.cross_entropy(x, target, reduction=reduction), lambda x: F.cross_entropy(x, target, reduction=reduction), (logits,), grad, 1e-5)


def test_adam_in_place():
    grad, m, v, master = torch.randn(40), torch.randn(40), torch.rand(40), torch.randn(40)
    weight, p = torch.zeros(40, dtype=torch.bfloat16), torch.nn.Parameter(master.clone())
    p.grad = grad.clone()
    optimizer = torch.optim.AdamW([p], lr=0.01, weight_decay=0.1, eps=1e-3)
    optimizer.state[p] = {"step": torch.tensor(4.0), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
    optimizer.step()
    assert ops.adam(grad, m, v, master, weight, step=5, lr=0.01, eps=1e-3, decay=0.1, strict=True) is None
    close(master, p.data, 1e-5), close(m, optimizer.state[p]["exp_avg"], 1e-6), close(v, optimizer.state[p]["exp_avg_sq"], 1e-6), close(weight, p.data)


@pytest.mark.parametrize("paged", [False, True])
def test_rows_go_into_the_caches_by_their_slots(paged):
    key, value = (torch.randn(5, 2, 8, generator=generator).bfloat16() for _ in range(2))
    slots = torch.tensor([7, -1, 0, 11, 4])
    caches = [torch.randn(3, 4, 2, 8, generator=generator).bfloat16() for _ in range(2)]
    wanted = [c.clone().view(12, 2, 8) for c in caches]
    for cache, new in zip(wanted, (key, value), strict=True):
        cache[slots[slots >= 0]] = new[slots >= 0]
    given = caches if paged else [c.view(12, 2, 8) for c in caches]
    assert ops.cache_update(key, value, *given, slots, strict=True) is None
    assert all(torch.equal(c.view(12, 2, 8), w) for c, w in zip(caches, wanted, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_are_added_by_their_index(dtype):
    out, rows = torch.randn(5, 8, generator=generator), torch.randn(7, 8, generator=generator).to(dtype)
    index = torch.tensor([4, 0, 4, -1, 2, 5, 4])
    kept = (index >= 0) & (index < 5)
    wanted = out.clone().index_add_(0, index[kept], rows[kept].float())
    assert ops.index_add(out, index, rows, strict=True) is None
    assert torch.allclose(out, wanted, atol=1e-5)
    wide = out.double()
    with pytest.raises(tilewright.TilewrightError):
        ops.index_add(wide, index, rows, strict=True)
    assert torch.equal(wide, out.double())


def test_numbers_are_counted():
    x = torch.tensor([[3, 0, 3], [9, -2, 1]])
    assert ops.bincount(x, 4, strict=True).tolist() == [1, 1, 0, 2]


def test_what_torch_does_instead_is_the_same():
    """f32 is taken by none of these kernels: torch computes it, with a reason, and strict=True raises."""
    x, w, grad = (torch.randn(3, 16, generator=generator) for _ in range(3))
    with pytest.warns(ops.FallbackWarning):
        dx, dw = ops.rmsnorm_backward(grad, x, w[0])
    leaf = x.clone().requires_grad_()
    F.rms_norm(leaf, (16,), w[0], 1e-6).backward(grad)
    close(dx, leaf.grad, 1e-5)
    with pytest.raises(tilewright.TilewrightError, match="bf16 is taken"):
        ops.rmsnorm_backward(grad, x, w[0], strict=True)


@pytest.mark.parametrize("name", ["rmsnorm", "attention"])
def test_traces_have_the_shapes(name):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(1, 2, 5, 64, dtype=torch.bfloat16, requires_grad=True)
        y = ops.attention(x, x, x) if name == "attention" else ops.rmsnorm(x)
        assert y.shape == x.shape and y.requires_grad
