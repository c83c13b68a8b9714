"""What a training step needs beside the forward pass: gradients of norms, attention and loss, and the optimizer's step."""
import math

from . import _dispatch
from ._arrays import arrays_of
from ._dispatch import Unfit
from ._library import TilewrightError
from ._operations import _operation, _or_torch, _rows, _torch, _vector


def _bf16(arrays, *tensors):
    for t in tensors:
        if arrays.dtype(t) != "bf16":
            raise Unfit(f"bf16 is taken, this is {arrays.dtype(t)}")


@_operation("(Tensor grad, Tensor x, Tensor? weight=None, float eps=1e-06, *, bool strict=False) -> (Tensor, Tensor)")
def rmsnorm_backward(grad, x, weight=None, eps=1e-6, *, strict=False):
    """(gradient of x, of weight) of rmsnorm(x, weight, eps), from its input alone. The sum over rows is made in a fixed order."""
    if grad.shape != x.shape:
        raise TilewrightError(1, f"rmsnorm_backward: a gradient with the shape of x, {tuple(x.shape)}, is expected, not {tuple(grad.shape)}")
    arrays = arrays_of(x)

    def ours():
        _bf16(arrays, grad, x)
        rows, grads = _rows(x, arrays), _rows(grad, arrays)
        if not arrays.size(rows):
            raise Unfit("the tensor has no element")
        dx, dw = arrays.empty(tuple(rows.shape), "bf16", x), arrays.empty((rows.shape[1],), "bf16", x)
        _dispatch.run("rmsnorm_backward", arrays, (rows, _vector(weight, 1.0, x, "bf16", arrays), grads), (dx, dw), (float(eps),))
        return dx.reshape(x.shape), dw

    def theirs():
        torch = _torch()
        with torch.enable_grad():
            leaf = x.detach().float().requires_grad_()
            w = (torch.ones(x.shape[-1], device=x.device) if weight is None else weight.detach().float()).requires_grad_()
            torch.nn.functional.rms_norm(leaf, (x.shape[-1],), w, eps).backward(grad.float())
        return leaf.grad.to(x.dtype), w.grad.to(x.dtype)

    return _or_torch("rmsnorm_backward", strict, ours, theirs)


@_operation("(Tensor grad, Tensor x, Tensor? weight=None, float eps=1e-05, *, bool strict=False) -> (Tensor, Tensor, Tensor)")
def layernorm_backward(grad, x, weight=None, eps=1e-5, *, strict=False):
    """(gradient of x, of weight, of bias) of layernorm(x, weight, bias, eps), from its input alone. Sums over rows are made in a fixed order."""
    if grad.shape != x.shape:
        raise TilewrightError(1, f"layernorm_backward: a gradient with the shape of x, {tuple(x.shape)}, is expected, not {tuple(grad.shape)}")
    arrays = arrays_of(x)

    def ours():
        _bf16(arrays, grad, x)
        rows, grads = _rows(x, arrays), _rows(grad, arrays)
        if not arrays.size(rows):
            raise Unfit("the tensor has no element")
        dx = arrays.empty(tuple(rows.shape), "bf16", x)
        dw, db = (arrays.empty((rows.shape[1],), "bf16", x) for _ in range(2))
        _dispatch.run("layernorm_backward", arrays, (rows, _vector(weight, 1.0, x, "bf16", arrays), grads), (dx, dw, db), (float(eps),))
        return dx.reshape(x.shape), dw, db

    def theirs():
        torch = _torch()
        with torch.enable_grad():
            leaf = x.detach().float().requires_grad_()
            w = (torch.ones(x.shape[-1], device=x.device) if weight is None else weight.detach().float()).requires_grad_()
            b = torch.zeros(x.shape[-1], device=x.device, requires_grad=True)
            torch.nn.functional.layer_norm(leaf, (x.shape[-1],), w, b, eps).backward(grad.float())
        return leaf.grad.to(x.dtype), w.grad.to(x.dtype), b.grad.to(x.dtype)

    return _or_torch("layernorm_backward", strict, ours, theirs)


@_operation("(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, *, bool causal=False, float? scale=None, bool deterministic=False, bool strict=False) -> (Tensor, Tensor, Tensor)")
def attention_backward(grad, q, k, v, out, lse, *, causal=False, scale=None, deterministic=False, strict=False):
    """(gradients of q, k and v) of attention, from what attention_with_lse gave. The sums of q's gradient are in no fixed order, so that its last bits may differ from call to call, unless
    `deterministic` asks for one, which takes longer. Heads that share keys and values add up theirs."""
    arrays = arrays_of(q)
    if q.ndim != 4 or k.ndim != 4 or tuple(k.shape) != tuple(v.shape) or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3] or k.shape[1] == 0 or q.shape[1] % k.shape[1] or any(tuple(t.shape) != tuple(q.shape) for t in (grad, out)) or tuple(lse.shape) != tuple(q.shape[:3]):
        raise TilewrightError(1, f"attention_backward: grad, q and out (B, H, S, D), k and v (B, H / G, T, D) and lse (B, H, S) are expected, not {', '.join(str(tuple(t.shape)) for t in (grad, q, out, k, v, lse))}")
    factor = 1.0 / math.sqrt(q.shape[3]) if scale is None else float(scale)
    group = q.shape[1] // k.shape[1]

    def ours():
        if _torch() is None:
            raise Unfit("torch tensors are taken")
        _bf16(arrays, grad, q, k, v, out)
        if q.shape[3] > 128 or q.shape[3] % 8 or not arrays.size(q) or not arrays.size(k) or not factor > 0:
            raise Unfit("heads of up to 128 elements, a multiple of 8, are taken, with a query and a key")
        if causal and q.shape[2] != k.shape[2]:
            raise Unfit("causal gradients are made of a square")
        kk, vv = (t.repeat_interleave(group, 1) if group > 1 else t for t in (k, v))
        dq, dk, dv = (arrays.empty(tuple(t.shape), "bf16", q) for t in (q, kk, vv))
        which = ("attention_causal_backward" if causal else "attention_backward") + ("_in_order" if deterministic else "")
        _dispatch.run(which, arrays, tuple(arrays.contiguous(t) for t in (q, kk, vv, out, lse, grad)), (dq, dk, dv), (factor,))
        if group > 1:
            dk, dv = (t.reshape(k.shape[0], k.shape[1], group, *k.shape[2:]).float().sum(2).to(k.dtype) for t in (dk, dv))
        return dq, dk, dv

    def theirs():
        torch = _torch()
        with torch.enable_grad():
            leaves = [t.detach().float().requires_grad_() for t in (q, k, v)]
            kk, vv = (t.repeat_interleave(group, 1) if group > 1 else t for t in leaves[1:])
            scores = torch.matmul(leaves[0], kk.transpose(-1, -2)) * factor
            if causal:
                seen = torch.arange(k.shape[2], device=q.device)[None, :] <= torch.arange(q.shape[2], device=q.device)[:, None]
                scores = scores.masked_fill(~seen, float("-inf"))
            torch.matmul(scores.softmax(-1), vv).backward(grad.float())
        return tuple(t.grad.to(q.dtype) for t in leaves)

    return _or_torch("attention_backward", strict, ours, theirs)


@_operation("(Tensor logits, Tensor target, *, float scale=1.0, bool strict=False) -> (Tensor, Tensor)")
def cross_entropy_with_gradient(logits, target, *, scale=1.0, strict=False):
    """(-log(softmax(logits)[target]) of each row in f32, its gradient times scale) in one pass over the rows; targets are classes below the row's length."""
    arrays = arrays_of(logits)
    if logits.ndim != 2 or tuple(target.shape) != tuple(logits.shape[:1]):
        raise TilewrightError(1, f"cross_entropy_with_gradient: logits (M, N) and target (M,) are expected, not {tuple(logits.shape)} and {tuple(target.shape)}")

    def ours():
        dtype = arrays.dtype(logits)
        if dtype not in ("bf16", "f32"):
            raise Unfit(f"bf16 or f32 is taken, this is {dtype}")
        if not arrays.size(logits):
            raise Unfit("the tensor has no element")
        loss, grad = arrays.empty((logits.shape[0],), "f32", logits), arrays.empty(tuple(logits.shape), dtype, logits)
        _dispatch.run("cross_entropy_gradient", arrays, (arrays.contiguous(logits), arrays.contiguous(arrays.indices(target))), (loss, grad), (float(scale),))
        return loss, grad

    def theirs():
        torch = _torch()
        log = logits.float().log_softmax(-1)
        hit = torch.nn.functional.one_hot(target.long(), logits.shape[1])
        return -log.gather(1, target.long()[:, None])[:, 0], ((log.exp() - hit) * scale).to(logits.dtype)

    return _or_torch("cross_entropy_with_gradient", strict, ours, theirs)


@_operation("(Tensor grad, Tensor(a!) m, Tensor(b!) v, Tensor(c!) master, Tensor(d!) weight, *, int step, float lr=0.001, float beta1=0.9, float beta2=0.999, float eps=1e-08, float decay=0.01, bool strict=False) -> ()")
def adam_(grad, m, v, master, weight, *, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01, strict=False):
    """One step of AdamW in place: moments m and v and parameters `master` in f32, and their copy `weight` in bf16. `step` counts from 1."""
    arrays = arrays_of(grad)
    state = (m, v, master, weight)
    if step < 1 or any(t.shape != grad.shape for t in state):
        raise TilewrightError(1, "adam: step counts from 1, and gradient, moments and parameters have one shape")
    if not (0 <= beta1 < 1 and 0 <= beta2 < 1):
        raise TilewrightError(1, f"adam: beta1 and beta2 are from 0 to below 1, not {beta1} and {beta2}")
    fix1, fix2 = 1 / (1 - beta1 ** step), 1 / (1 - beta2 ** step)

    def ours():
        if arrays.dtype(grad) not in ("bf16", "f32") or any(arrays.dtype(t) != "f32" for t in state[:3]) or arrays.dtype(weight) != "bf16":
            raise Unfit("a gradient in bf16 or f32, state in f32 and weights in bf16 are taken")
        if any(not arrays.is_contiguous(t) or not arrays.begins_at_a_vector(t) for t in state):
            raise Unfit("what is updated in place is contiguous, and begins at a multiple of 16 bytes")
        flat = [t.reshape(-1) for t in (arrays.contiguous(grad), *state)]
        if arrays.size(grad):
            _dispatch.run("adam", arrays, flat[:1], flat[1:], (beta1, beta2, lr, fix1, fix2, eps, decay))

    def theirs():
        g = grad.float()
        m.mul_(beta1).add_(g, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        master.sub_(lr * (m * fix1 / ((v * fix2).clamp(min=0).sqrt() + eps) + decay * master))
        weight.copy_(master)

    _or_torch("adam", strict, ours, theirs)


@_operation("(Tensor(a!) out, Tensor index, Tensor rows, *, bool strict=False) -> ()")
def index_add_(out, index, rows, *, strict=False):
    """out[index[p]] += rows[p] for all rows p, in place: the gradient of an embedding. An index outside of out adds nothing, and any number of rows may name one place; their sum is in no fixed order."""
    if out.ndim != 2 or rows.ndim != 2 or rows.shape[1] != out.shape[1] or tuple(index.shape) != (rows.shape[0],):
        raise TilewrightError(1, f"index_add: out (V, N), index (P) and rows (P, N) are expected, not {tuple(out.shape)}, {tuple(index.shape)} and {tuple(rows.shape)}")
    arrays = arrays_of(rows)

    def ours():
        if arrays.dtype(out) != "f32" or arrays.dtype(rows) not in ("bf16", "f32"):
            raise Unfit("rows of bf16 or f32 are added to f32")
        if not arrays.is_contiguous(out) or not arrays.begins_at_a_vector(out):
            raise Unfit("what is updated in place is contiguous, and begins at a multiple of 16 bytes")
        if arrays.size(rows) and arrays.size(out):
            _dispatch.run("index_add", arrays, (arrays.contiguous(rows), arrays.contiguous(arrays.indices(index))), (out,))

    def theirs():
        kept = (index >= 0) & (index < out.shape[0])
        out.index_add_(0, index[kept].long(), rows[kept].to(out.dtype))

    _or_torch("index_add", strict, ours, theirs)


@_operation("(Tensor x, int length, *, bool strict=False) -> Tensor")
def bincount(x, length, *, strict=False):
    """How often each number from 0 to length - 1 occurs in x, as i32; other numbers count for nothing."""
    if length < 1:
        raise TilewrightError(1, f"bincount: a length of {length}")
    arrays = arrays_of(x)

    def ours():
        if not arrays.size(x):
            raise Unfit("the tensor has no element")
        counts = arrays.empty((length,), "i32", x)
        _dispatch.run("bincount", arrays, (arrays.contiguous(arrays.indices(x.reshape(-1))),), (counts,))
        return counts

    def theirs():
        torch = _torch()
        return torch.bincount(x[(x >= 0) & (x < length)].long(), minlength=length).to(torch.int32)

    return _or_torch("bincount", strict, ours, theirs)
