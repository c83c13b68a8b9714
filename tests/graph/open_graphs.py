"""Graphs with open sizes, a few of each operator family."""


def leaf(name, shape, dtype="f32"):
    return {"name": name, "shape": shape, "dtype": dtype}


def node(name, op, inputs, shape, dtype="f32", **attributes):
    return {"name": name, "op": op, "inputs": inputs, "attributes": attributes, "shape": shape, "dtype": dtype}


def G(inputs, nodes, parameters=(), outputs=None, sizes=(("N", 1, 1024),)):
    """Sizes are (name, least, most); the output is the last node."""
    return {"format": "tilewright-graph", "version": 1, "name": "open", "sizes": [{"name": n, "least": a, "most": b} for n, a, b in sizes], "inputs": inputs,
            "parameters": list(parameters), "nodes": nodes, "outputs": outputs or [nodes[-1]["name"]]}


B_AND_T = (("B", 1, 32), ("T", 1, 128))
CASES = {}
CASES["pointwise"] = G([leaf("x", ["N", 24])], [node("a", "gelu", ["x"], ["N", 24]), node("b", "mul", ["a", 2.0], ["N", 24])])
CASES["pointwise 1d"] = G([leaf("x", ["N"])], [node("a", "silu", ["x"], ["N"])])
CASES["last open"] = G([leaf("x", [3, "N"]), leaf("y", ["N"])], [node("a", "add", ["x", "y"], [3, "N"]), node("b", "relu", ["a"], [3, "N"])])
CASES["rows"] = G([leaf("x", ["N", 7, 33])], [node("a", "sum", ["x"], ["N", 7], dims=[2], keepdim=False)])
CASES["softmax"] = G([leaf("x", ["N", 50])], [node("a", "softmax", ["x"], ["N", 50], dim=1)])
CASES["softmax open"] = G([leaf("x", [5, "N"])], [node("a", "softmax", ["x"], [5, "N"], dim=1)])
CASES["layernorm"] = G([leaf("x", ["N", 40])], [node("a", "layer_norm", ["x", "w", "w"], ["N", 40], dims=1)], [leaf("w", [40])])
CASES["rms bf16"] = G([leaf("x", ["B", "N", 40], "bf16")], [node("a", "rms_norm", ["x", "w"], ["B", "N", 40], "bf16", dims=1)], [leaf("w", [40], "bf16")], sizes=(("B", 1, 64), ("N", 1, 512)))
CASES["mean over open"] = G([leaf("x", ["N", 40])], [node("a", "mean", ["x"], [40], dims=[0], keepdim=False)])
CASES["mean over open rows"] = G([leaf("x", [3, "N"])], [node("a", "mean", ["x"], [3], dims=[1], keepdim=False)])
CASES["var open"] = G([leaf("x", [3, "N"])], [node("a", "var", ["x"], [3], dims=[1], keepdim=False, correction=0)], sizes=(("N", 2, 1024), ))
CASES["linear"] = G([leaf("x", ["N", 40])], [node("l", "linear", ["x", "w", "b"], ["N", 24]), node("r", "relu", ["l"], ["N", 24])], [leaf("w", [24, 40]), leaf("b", [24])])
CASES["linear 3d"] = G([leaf("x", ["B", "T", 40])], [node("l", "linear", ["x", "w", "b"], ["B", "T", 24])], [leaf("w", [24, 40]), leaf("b", [24])], sizes=(("B", 1, 64), ("T", 1, 512)))
CASES["linear bf16"] = G([leaf("x", ["N", 40], "bf16")], [node("l", "linear", ["x", "w"], ["N", 24], "bf16")], [leaf("w", [24, 40], "bf16")])
CASES["matmul k open"] = G([leaf("x", [16, "N"]), leaf("y", ["N", 8])], [node("l", "matmul", ["x", "y"], [16, 8])])
CASES["bmm scores"] = G([leaf("q", ["B", 2, "T", 16]), leaf("k", ["B", 2, "T", 16])],
    [node("kt", "permute", ["k"], ["B", 2, 16, "T"], order=[0, 1, 3, 2]), node("s", "matmul", ["q", "kt"], ["B", 2, "T", "T"]), node("m", "mul", ["s", 0.25], ["B", 2, "T", "T"]), node("p", "softmax", ["m"], ["B", 2, "T", "T"], dim=3)], sizes=B_AND_T)
CASES["attention"] = G([leaf("q", ["B", 2, "T", 16]), leaf("k", ["B", 2, "T", 16]), leaf("v", ["B", 2, "T", 16])],
    [node("s", "attention", ["q", "k", "v"], ["B", 2, "T", 16])], sizes=B_AND_T)
CASES["attention causal"] = G([leaf("q", ["B", 2, "T", 16]), leaf("k", ["B", 2, "T", 16]), leaf("v", ["B", 2, "T", 16])],
    [node("s", "attention", ["q", "k", "v"], ["B", 2, "T", 16], causal=True)], sizes=B_AND_T)
CASES["embedding"] = G([leaf("i", ["N", 5], "i64")], [node("e", "index_select", ["w", "i"], ["N", 5, 12], dim=0)], [leaf("w", [9, 12])])
CASES["transpose heads"] = G([leaf("x", ["B", "T", 32])], [node("v", "reshape", ["x"], ["B", "T", 4, 8]), node("p", "permute", ["v"], ["B", 4, "T", 8], order=[0, 2, 1, 3]), node("y", "exp", ["p"], ["B", 4, "T", 8])], sizes=B_AND_T)
CASES["cat"] = G([leaf("x", ["N", 8]), leaf("y", ["N", 4])], [node("c", "cat", ["x", "y"], ["N", 12], dim=1)])
CASES["conv"] = G([leaf("x", ["N", 3, 8, 8])], [node("c", "conv", ["x", "w", "b"], ["N", 8, 6, 6], stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1), node("r", "relu", ["c"], ["N", 8, 6, 6])], [leaf("w", [8, 3, 3, 3]), leaf("b", [8])], sizes=(("N", 1, 64), ))
CASES["pool"] = G([leaf("x", ["N", 3, 8, 8])], [node("c", "max_pool", ["x"], ["N", 3, 4, 4], dims=2, kernel=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1])], sizes=(("N", 1, 64), ))
CASES["cumsum"] = G([leaf("x", ["N", 30])], [node("c", "cumsum", ["x"], ["N", 30], dim=1)])
CASES["mlp"] = G([leaf("x", ["B", "T", 32])], [node("n", "layer_norm", ["x", "g", "g"], ["B", "T", 32], dims=1), node("u", "linear", ["n", "w1"], ["B", "T", 64]), node("a", "gelu", ["u"], ["B", "T", 64]), node("d", "linear", ["a", "w2"], ["B", "T", 32]), node("y", "add", ["x", "d"], ["B", "T", 32])], [leaf("g", [32]), leaf("w1", [64, 32]), leaf("w2", [32, 64])], sizes=B_AND_T)
CASES["mse"] = G([leaf("x", ["N", 8]), leaf("y", ["N", 8])], [node("l", "mse_loss", ["x", "y"], [])])
CASES["batch norm"] = G([leaf("x", ["N", 6, 5])], [node("l", "batch_norm", ["x"], ["N", 6, 5])], sizes=(("N", 2, 64), ))
CASES["flatten reshape"] = G([leaf("x", ["N", 6, 5])], [node("f", "reshape", ["x"], ["30*N"]), node("l", "exp", ["f"], ["30*N"])], sizes=(("N", 2, 64), ))
CASES["argmax"] = G([leaf("x", ["N", 60])], [node("l", "argmax", ["x"], ["N"], "i64", dim=1)])
CASES["ce"] = G([leaf("x", ["N", 10]), leaf("t", ["N"], "i64")], [node("l", "cross_entropy", ["x", "t"], [])])
CASES["padded"] = G([leaf("x", ["N", 8])], [node("l", "slice", ["x"], ["N", 4], starts=[0, 2]), node("y", "exp", ["l"], ["N", 4])])
