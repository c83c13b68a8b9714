"""The operations as torch.ops.tilewright.*: shapes for tracing, gradients where kernels make them."""
import torch

_library = torch.library.Library("tilewright", "DEF")


def _shape_of_matmul(a, b, *_, **__):
    return a.new_empty((*a.shape[:-1], b.shape[-1]))


def _without(x, dim, keepdim=False, dtype=None):
    if dim is None:
        shape = (1,) * x.ndim if keepdim else ()
    else:
        axis = dim % x.ndim
        shape = (*x.shape[:axis], *((1,) if keepdim else ()), *x.shape[axis + 1:])
    return x.new_empty(shape, dtype=dtype or x.dtype)


def _same(x, *_, **__):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _along(x, dim=-1, **_):
    """Rows are moved last and back: the strides of the result tell."""
    axis = dim % x.ndim
    if axis == x.ndim - 1:
        return x.new_empty(x.shape)
    return x.new_empty(x.movedim(axis, -1).shape).movedim(-1, axis)


# What an operation gives for tensors that only have a shape.
_FAKE = {
    "matmul": _shape_of_matmul,
    "linear": lambda x, weight, *_, **__: x.new_empty((*x.shape[:-1], weight.shape[0])),
    "matmul_gated": lambda x, gate, up, **_: x.new_empty((*x.shape[:-1], gate.shape[0])),
    "attention": lambda q, k, v, **_: q.new_empty(q.shape),
    "attention_with_lse": lambda q, k, v, **_: (q.new_empty(q.shape), q.new_empty(q.shape[:-1], dtype=torch.float32)),
    "softmax": _along,
    "cumsum": _along,
    "cumprod": _along,
    "logsumexp": lambda x, dim=-1, **_: _without(x, dim),
    "argmax": lambda x, dim=-1, **_: _without(x, dim, dtype=torch.int64),
    "argmin": lambda x, dim=-1, **_: _without(x, dim, dtype=torch.int64),
    "layernorm": _same,
    "rmsnorm": _same,
    "rmsnorm_residual": lambda x, residual, *_, **__: (x.new_empty(x.shape), x.new_empty(x.shape)),
    "cross_entropy": lambda logits, target, reduction="mean", **_: logits.new_empty(target.shape if reduction == "none" else (), dtype=torch.float32),
    "sum": lambda x, dim=None, keepdim=False, **_: _without(x, dim, keepdim),
    "mean": lambda x, dim=None, keepdim=False, **_: _without(x, dim, keepdim),
    "max": lambda x, dim=None, keepdim=False, **_: _without(x, dim, keepdim),
    "min": lambda x, dim=None, keepdim=False, **_: _without(x, dim, keepdim),
    "transpose": lambda x, **_: x.new_empty((*x.shape[:-2], x.shape[-1], x.shape[-2])),
    "rope": lambda x, cosine, sine, **_: x.new_empty(x.shape),
    "relu": _same,
    "silu": _same,
    "sigmoid": _same,
    "gelu": _same,
    "swiglu": lambda x, **_: x.new_empty((*x.shape[:-1], x.shape[-1] // 2)),
    "bias_gelu": _same,
    "dropout": _same,
    "grouped_gemm": lambda x, w, ends, **_: x.new_empty((x.shape[0], w.shape[-2])),
    "moe": lambda x, *_, **__: x.new_empty(x.shape),
    "gathered_gemm": lambda x, w, rows, ends, **_: x.new_empty((rows.shape[0], w.shape[-2])),
    "matmul_f32": lambda a, b, *_, **__: a.new_empty((a.shape[0], b.shape[0])),
    "matmul_fp8": lambda a, b, *_, **__: a.new_empty((a.shape[0], b.shape[0]), dtype=torch.bfloat16),
    "matmul_fp8_blocks": lambda a, b, *_, **__: a.new_empty((a.shape[0], b.shape[0]), dtype=torch.bfloat16),
    "matmul_int8": lambda a, b, scale_a=None, *_, **__: a.new_empty((a.shape[0], b.shape[0]), dtype=torch.int32 if scale_a is None else torch.bfloat16),
    "linear_w4": lambda x, weight, *_, **__: x.new_empty((*x.shape[:-1], weight.shape[0])),
    "quantize_fp8": lambda x, **_: (x.new_empty(x.shape, dtype=torch.float8_e4m3fn), x.new_empty(x.shape[:-1], dtype=torch.float32)),
    "quantize_fp8_blocks": lambda x, **_: (x.new_empty(x.shape, dtype=torch.float8_e4m3fn), x.new_empty(((x.shape[1] + 127) // 128, x.shape[0]), dtype=torch.float32)),
    "attention_variant": lambda q, *_, **__: q.new_empty(q.shape),
    "attention_packed": lambda q, *_, **__: q.new_empty(q.shape),
    "attention_backward": lambda grad, q, k, v, *_, **__: tuple(t.new_empty(t.shape) for t in (q, k, v)),
    "decode": lambda q, *_, **__: q.new_empty(q.shape),
    "decode_paged": lambda q, *_, **__: q.new_empty(q.shape),
    "rmsnorm_backward": lambda grad, x, *_, **__: (x.new_empty(x.shape), x.new_empty(x.shape[-1:])),
    "layernorm_backward": lambda grad, x, *_, **__: (x.new_empty(x.shape), x.new_empty(x.shape[-1:]), x.new_empty(x.shape[-1:])),
    "cross_entropy_with_gradient": lambda logits, target, **_: (logits.new_empty(target.shape, dtype=torch.float32), logits.new_empty(logits.shape)),
    "adam": lambda *_, **__: None,
    "cache_update": lambda *_, **__: None,
    "index_add": lambda *_, **__: None,
    "bincount": lambda x, length, **_: x.new_empty((length,), dtype=torch.int32),
    "gathered_swiglu": lambda x, w, rows, ends, **_: x.new_empty((rows.shape[0], w.shape[-2])),
}


def _no_gradient(name):
    def setup_context(ctx, inputs, output, keyword_only_inputs=None):
        pass

    def backward(ctx, *grads):
        raise NotImplementedError(f"tilewright.ops.{name} has no backward kernel\n  fix: call it under torch.no_grad(), or use torch's own operation where gradients are needed")

    return setup_context, backward


def _sum_to(grad, shape):
    """The gradient of something that was broadcast to the result."""
    grad = grad.reshape(-1, *grad.shape[-len(shape):]) if len(shape) < grad.ndim else grad
    return grad.sum(0) if grad.ndim > len(shape) else grad


def _needed(ctx, number):
    """Inputs that were not given have no entry."""
    return number < len(ctx.needs_input_grad) and ctx.needs_input_grad[number]


def _matmul_setup(ctx, inputs, output, keyword_only_inputs=None):
    a, b, bias, activation, residual, row_scale, column_scale = (*inputs, *[None] * 7)[:7]
    ctx.save_for_backward(a, b)
    ctx.bias_shape = None if bias is None else bias.shape
    ctx.plain = activation is None and row_scale is None and column_scale is None


def _matmul_gradient(ctx, grad):
    a, b = ctx.saved_tensors
    if not ctx.plain:
        raise NotImplementedError("tilewright.ops.matmul has no backward for an activation or a scale in its epilogue\n  fix: apply them after the product")
    product = torch.ops.tilewright.matmul
    grad_a = grad_b = grad_bias = None
    if _needed(ctx, 0):
        grad_a = product(grad, b.transpose(-1, -2))
    if _needed(ctx, 1):
        flat = b.ndim == 2
        rows, grads = (a.reshape(-1, a.shape[-1]), grad.reshape(-1, grad.shape[-1])) if flat else (a, grad)
        grad_b = product(rows.transpose(-1, -2), grads)
    if _needed(ctx, 2):
        grad_bias = _sum_to(grad, ctx.bias_shape)
    return (grad_a, grad_b, grad_bias, None, grad if _needed(ctx, 4) else None, None, None)[: len(ctx.needs_input_grad)]


def _linear_setup(ctx, inputs, output, keyword_only_inputs=None):
    x, weight, bias, activation, residual = (*inputs, *[None] * 5)[:5]
    ctx.save_for_backward(x, weight)
    ctx.plain = activation is None


def _linear_gradient(ctx, grad):
    x, weight = ctx.saved_tensors
    if not ctx.plain:
        raise NotImplementedError("tilewright.ops.linear has no backward for an activation in its epilogue\n  fix: apply it after the product")
    product = torch.ops.tilewright.matmul
    grads, rows = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
    grad_x = product(grad, weight) if _needed(ctx, 0) else None
    grad_weight = product(grads.transpose(0, 1), rows) if _needed(ctx, 1) else None
    return (grad_x, grad_weight, grads.sum(0) if _needed(ctx, 2) else None, None, grad if _needed(ctx, 4) else None)[: len(ctx.needs_input_grad)]


def _norm_setup(ctx, inputs, output, keyword_only_inputs=None):
    """x, weight, (bias,) eps: what was not given has its default."""
    ctx.weight = len(inputs) > 1 and inputs[1] is not None
    ctx.save_for_backward(inputs[0], *inputs[1:2] if ctx.weight else ())
    ctx.eps = [v for v in inputs if isinstance(v, float)]


def _norm_gradient(operation):
    def backward(ctx, grad):
        x, *weight = ctx.saved_tensors
        made = getattr(torch.ops.tilewright, operation)(grad, x, weight[0] if weight else None, *ctx.eps)
        return (*[g if _needed(ctx, i) else None for i, g in enumerate(made)], None, None)[: len(ctx.needs_input_grad)]

    return backward


def _attention_setup(ctx, inputs, output, keyword_only_inputs=None):
    ctx.save_for_backward(*inputs[:3], *output)
    ctx.mark_non_differentiable(output[1])
    ctx.options = {n: v for n, v in (keyword_only_inputs or {}).items() if n in ("causal", "scale")}


def _attention_gradient(ctx, grad, _):
    q, k, v, out, lse = ctx.saved_tensors
    return torch.ops.tilewright.attention_backward(grad, q, k, v, out, lse, deterministic=torch.are_deterministic_algorithms_enabled(), **ctx.options)


def _attention(q, k, v, **options):
    """Where a gradient is wanted, through the operation that keeps the logsumexp."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v)):
        return torch.ops.tilewright.attention_with_lse(q, k, v, **options)[0]
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.tilewright.attention(q, k, v, **options)


def _cross_entropy_setup(ctx, inputs, output, keyword_only_inputs=None):
    ctx.save_for_backward(*inputs[:2])
    ctx.options = keyword_only_inputs or {}


def _cross_entropy_gradient(ctx, grad):
    logits, target = ctx.saved_tensors
    flat = target.reshape(-1)
    counted = flat != ctx.options.get("ignore_index", -100)
    _, made = torch.ops.tilewright.cross_entropy_with_gradient(logits.reshape(-1, logits.shape[-1]), flat * counted)
    reduction = ctx.options.get("reduction", "mean")
    share = grad.reshape(-1) * counted if reduction == "none" else counted * (grad / counted.sum() if reduction == "mean" else grad)
    return (made * share[:, None].to(made.dtype)).reshape(logits.shape), None


def _dropout_setup(ctx, inputs, output, keyword_only_inputs=None):
    ctx.p = inputs[1] if len(inputs) > 1 else 0.5
    ctx.options = {n: v for n, v in (keyword_only_inputs or {}).items() if n != "strict"}


def _dropout_gradient(ctx, grad):
    """The same mask, made again."""
    grad_x = torch.ops.tilewright.dropout(grad, ctx.p, **ctx.options) if _needed(ctx, 0) else None
    return (grad_x, None, grad if _needed(ctx, 2) else None)[: len(ctx.needs_input_grad)]


# What has gradients: (the function of the gradient, what the forward pass keeps).
_GRADIENTS = {
    "matmul": (_matmul_gradient, _matmul_setup),
    "linear": (_linear_gradient, _linear_setup),
    "rmsnorm": (_norm_gradient("rmsnorm_backward"), _norm_setup),
    "layernorm": (_norm_gradient("layernorm_backward"), _norm_setup),
    "attention_with_lse": (_attention_gradient, _attention_setup),
    "cross_entropy": (_cross_entropy_gradient, _cross_entropy_setup),
    "dropout": (_dropout_gradient, _dropout_setup),
}


def register(operations):
    for name, (function, schema) in operations.items():
        _library.define(name + schema)
        for key in ("CUDA", "CPU"):
            _library.impl(name, function, key)
        torch.library.register_fake(f"tilewright::{name}", _FAKE[name], lib=_library)
        if "!" in schema:  # it writes its arguments and gives nothing
            continue
        if name == "attention":
            _library.impl(name, _attention, "Autograd")
            continue
        if name in _GRADIENTS:
            backward, setup_context = _GRADIENTS[name]
        else:
            setup_context, backward = _no_gradient(name)
        torch.library.register_autograd(f"tilewright::{name}", backward, setup_context=setup_context, lib=_library)
