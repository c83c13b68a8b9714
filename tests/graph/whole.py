"""Small graphs of the kinds that become several kernels, each by its name."""
from families import Maker


def _conv(m, x, s, outs, kernel, padding=0, stride=1, **attributes):
    to = [s[0], outs] + [(n + 2 * padding - kernel) // stride + 1 for n in s[2:]]
    dims = len(s) - 2
    inputs = [x, m.leaf([outs, s[1]] + [kernel] * dims, kind="parameters"), m.leaf([outs], kind="parameters")]
    return m.node("conv", inputs, to, stride=[stride] * dims, padding=[padding] * dims, **attributes), to


def _linear(m, x, rows, depth, outs):
    return m.node("linear", [x, m.leaf([outs, depth], kind="parameters"), m.leaf([outs], kind="parameters")], [rows, outs])


def conv_bias_relu(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3)
    y = m.node("relu", [y], s)
    return m.done(m.node("add", [y, m.leaf([8, 1, 1], kind="parameters")], s))


def padded_conv(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3, padding=1)
    return m.done(m.node("leaky_relu", [y], s, negative_slope=0.1))


def linear_gelu(m):
    return m.done(m.node("gelu", [_linear(m, m.leaf([16, 32]), 16, 32, 24)], [16, 24]))


def two_layers(m):
    y = m.node("relu", [_linear(m, m.leaf([16, 32]), 16, 32, 24)], [16, 24])
    return m.done(_linear(m, y, 16, 24, 8))


def linear_layer_norm(m):
    y = _linear(m, m.leaf([16, 32]), 16, 32, 24)
    return m.done(m.node("layer_norm", [y, m.leaf([24], kind="parameters"), m.leaf([24], kind="parameters")], [16, 24], dims=1, eps=1e-5))


def channel_softmax(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3)
    return m.done(m.node("softmax", [y], s, dim=1))


def batch_norm_relu(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3)
    y = m.node("batch_norm", [y, m.leaf([8], kind="parameters"), m.leaf([8], kind="parameters")], s, eps=1e-5)
    return m.done(m.node("relu", [y], s))


def conv_max_pool(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3)
    return m.done(m.node("max_pool", [y], s[:2] + [3, 3], dims=2, kernel=[2, 2], stride=[2, 2]))


def conv_avg_pool(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3)
    y = m.node("avg_pool", [y], s[:2] + [3, 3], dims=2, kernel=[2, 2], stride=[2, 2])
    return m.done(m.node("sigmoid", [y], s[:2] + [3, 3]))


def residual(m):
    x = m.leaf([16, 32])
    y = m.node("relu", [_linear(m, x, 16, 32, 32)], [16, 32])
    return m.done(m.node("add", [y, x], [16, 32]))


def product_max_sum(m):
    y = m.node("matmul", [m.leaf([16, 32]), m.leaf([32, 24], kind="parameters")], [16, 24])
    y = m.node("amax", [m.node("reshape", [y], [16, 12, 2])], [16, 12], dims=[2], keepdim=False)
    return m.done(m.node("sum", [y], [16], dims=[1], keepdim=False))


def logsumexp_chain(m):
    y = _linear(m, m.leaf([16, 32]), 16, 32, 24)
    for _ in range(2):
        y = m.node("logsumexp", [y], [16, 1], dims=[1], keepdim=True)
    return m.done(m.node("leaky_relu", [y], [16, 1], negative_slope=0.01))


def instance_norm(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3)
    return m.done(m.node("div", [m.node("instance_norm", [y], s, eps=1e-5), 2.0], s))


def group_norm_max(m):
    y, s = _conv(m, m.leaf([2, 3, 8, 8]), [2, 3, 8, 8], 8, 3)
    y = m.node("group_norm", [y, m.leaf([8], kind="parameters"), m.leaf([8], kind="parameters")], s, groups=4, eps=1e-5)
    return m.done(m.node("amax", [y], s[:3], dims=[3], keepdim=False))


def permuted(m):
    y = m.node("matmul", [m.leaf([16, 32]), m.leaf([32, 24], kind="parameters")], [16, 24])
    y = m.node("permute", [y], [24, 16], order=[1, 0])
    return m.done(m.node("matmul", [y, m.leaf([16, 8], kind="parameters")], [24, 8]))


def attention(m):
    s = [2, 2, 8, 8]
    return m.done(m.node("attention", [m.leaf(s), m.leaf(s), m.leaf(s)], s))


GRAPHS = {f.__name__: f for f in (conv_bias_relu, padded_conv, linear_gelu, two_layers, linear_layer_norm, channel_softmax, batch_norm_relu, conv_max_pool,
                                  conv_avg_pool, residual, product_max_sum, logsumexp_chain, instance_norm, group_norm_max, permuted, attention)}


def make(name):
    return GRAPHS[name](Maker(name, 0))
