"""Times our kernels against torch expressions, interleaved in one process. Started by `tilewright bench --suite` and `bench --against torch`.

    python3 bench/torch_peer.py CASES.json OUT.jsonl START [LOCK]

CASES.json is a list of {"case", "file", "kernel", "constants", "scalars", "inputs", "tensors": [{"name", "dtype", "dims", "output"}], "torch", "prelude", "setup",
"rounds", "l2"}. `torch` is a Python expression over the tensors by name (of the same values that our kernel gets), by place (`inputs`,
`outputs`), `torch` and `F`; it is evaluated once a call. `prelude` runs once for all cases that have the same one, `setup` once for each set of inputs. One line of JSON a case, from number START on; a line is written before a case begins
({"began": n}), so that a crash is charged to its case. LOCK is the file by which processes take turns on the GPU; it is taken once torch is imported.
"""
import fcntl
import functools
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import harness  # noqa: E402
import tilewright  # noqa: E402

DTYPES = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "e4m3": torch.float8_e4m3fn,
          "e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}


def make_set(case, index):
    generator = torch.Generator(device="cuda").manual_seed(index + 1)
    made = {}
    for t in case["tensors"]:
        dtype, dims = DTYPES[t["dtype"]], t["dims"]
        if t["output"]:
            made[t["name"]] = torch.empty(dims, device="cuda", dtype=dtype)
            made[t["name"]].view(torch.uint8).fill_(255)
        elif t["name"] in case.get("inputs", {}):
            made[t["name"]] = torch.tensor(case["inputs"][t["name"]], device="cuda").to(dtype).reshape(dims)
        elif t["dtype"] in ("e4m3", "e5m2"):
            made[t["name"]] = torch.rand(dims, device="cuda", generator=generator).sub(0.5).mul(4).to(dtype)
        elif dtype.is_floating_point:
            # In place, the weights of many experts are a tenth of the memory; as wide as the sums of four uniforms that `tilewright bench` fills in.
            made[t["name"]] = torch.empty(dims, device="cuda", dtype=dtype).normal_(0, 3 ** -0.5, generator=generator)
        elif t.get("index"):
            made[t["name"]] = torch.zeros(dims, device="cuda", dtype=dtype)
        else:
            made[t["name"]] = torch.randint(0, 8, dims, device="cuda", generator=generator).to(dtype)
    return made


def error_between(ours, theirs):
    a, b = ours.double(), theirs.double()
    if a.shape != b.shape:
        return None
    norm = torch.linalg.vector_norm(b).item()
    return torch.linalg.vector_norm(a - b).item() / norm if norm > 0 else torch.linalg.vector_norm(a - b).item()


@functools.lru_cache(maxsize=None)
def prepared(prelude):
    """The names that a prelude makes: once for all cases that share it, so that what it compiles is compiled once for each shape."""
    names = {"torch": torch, "F": F}
    if "torch.compile" in prelude:
        torch._dynamo.config.automatic_dynamic_shapes = False   # every shape gets code of its own, as it would alone
        torch._dynamo.config.cache_size_limit = 256
    exec(prelude, names)
    return names


ABOUT_THE_PEER = ("torch", "prelude", "setup")


def measure(cases):
    """Our kernel and the peers of some cases that differ in nothing else, interleaved in one run: an answer for each of them."""
    case = cases[0]
    if case.get("language") == "cute":
        module = tilewright._module.Module({"path": case["file"], "signature": case["signature"]})
    else:
        module = tilewright.load(case["file"], **case.get("constants", {}))
    kernel = getattr(module, case["kernel"])
    set_bytes = sum(torch.empty(0, dtype=DTYPES[t["dtype"]]).element_size() * max(1, torch.Size(t["dims"]).numel()) for t in case["tensors"])
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    sets = 1 if case.get("l2") == "warm" else min(64, -(-3 * l2 // set_bytes))
    sets = max(1, min(sets, int(torch.cuda.mem_get_info()[0] / 4 / set_bytes)))
    made = [make_set(case, i) for i in range(sets)]
    scalars = case.get("scalars", {})
    outputs = [t["name"] for t in case["tensors"] if t["output"]]

    def peer_of(c):
        spaces = []
        for tensors in made:
            space = dict(prepared(c.get("prelude", "")), **tensors, **scalars)
            space["inputs"] = [tensors[t["name"]] for t in case["tensors"] if not t["output"]]
            space["outputs"] = [tensors[t["name"]] for t in case["tensors"] if t["output"]]
            exec(c.get("setup", ""), space)
            spaces.append(space)
        expression = compile(c["torch"], c["case"], "eval")
        return lambda i: eval(expression, spaces[i])

    def ours(i):
        kernel(**made[i], **scalars)

    def differences(peer):
        result = peer(0)
        result = result if isinstance(result, (tuple, list)) else (result,)
        torch.cuda.synchronize()
        return {name: error_between(made[0][name], r) for name, r in zip(outputs, result) if isinstance(r, torch.Tensor)}

    peers = [peer_of(c) for c in cases]
    ours(0)
    before = [differences(p) for p in peers]
    timed = harness.interleave({"ours": ours, **dict(enumerate(peers))}, rotations=sets, rounds=case.get("rounds", 30))
    after = [differences(p) for p in peers]
    footprint = sets * set_bytes / l2
    answers = []
    for n in range(len(cases)):
        ratio = timed["ratios"][f"{n}/ours"]
        answers.append({"ours_us": timed["ours"]["median_us"], "ours_interval": [timed["ours"]["lo_us"], timed["ours"]["hi_us"]], "peer_us": timed[n]["median_us"],
                        "ratio": ratio["ratio"], "interval": [ratio["lo"], ratio["hi"]], "l2": "cold" if footprint >= 2 else "warm",
                        "difference_from_peer": before[n], "difference_after_timing": after[n], "sets": sets,
                        "versions": {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}})
    return answers


def alike(a, b):
    return {k: v for k, v in a.items() if k not in ABOUT_THE_PEER} == {k: v for k, v in b.items() if k not in ABOUT_THE_PEER}


def main():
    with open(sys.argv[1]) as f:
        cases = json.load(f)
    if len(sys.argv) > 4 and sys.argv[4]:
        turn = open(sys.argv[4], "a")
        fcntl.flock(turn, fcntl.LOCK_EX)   # until this process ends
    with open(sys.argv[2], "a") as out:
        def say(line):
            out.write(json.dumps(line) + "\n")
            out.flush()
            os.fsync(out.fileno())

        n = int(sys.argv[3])
        while n < len(cases):
            end = n + 1
            while end < len(cases) and alike(cases[n], cases[end]):
                end += 1
            try:
                say({"began": n})
                answers = measure(cases[n:end])
            except Exception as error:  # a peer's failure is a result, of that peer alone
                if "CUDA" in str(error):
                    say({"number": n, "problem": f"{type(error).__name__}: {error}"[:2000]})
                    sys.exit(1)   # the context may be lost: the caller starts another process
                answers = []
                for c in cases[n:end]:
                    say({"began": n + len(answers)})
                    try:
                        answers += measure([c])
                    except Exception as own:
                        answers.append({"problem": f"{type(own).__name__}: {own}"[:2000]})
            for i, answer in enumerate(answers):
                say({"number": n + i, **answer})
            n = end
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
