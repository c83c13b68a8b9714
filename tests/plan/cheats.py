"""Candidates that try to win without doing the work. Each names the gate that refuses it, and words of the reason.

`docs/security.md` lists them all (tests/plan/test_cheats.py compares). `kind` is the heading there. A cheat with `task` "rows" is a candidate for the sum of rows, all others for `Y = 2 X`.
"""
import dataclasses

TASKS = {"dbl": '''name = "dbl"
computes = "Y[n] = X[n] * 2"
target = "sm_80"
[sizes]
N = 4096
[tensors]
X = { dtype = "f32", dims = ["N"] }
Y = { dtype = "f32", dims = ["N"] }
[[held_out]]
N = 1000
''', "rows": '''name = "rows"
computes = "S[m] = sum(n, X[m, n])"
target = "sm_80"
[sizes]
M = 256
N = 512
[tensors]
X = { dtype = "f32", dims = ["M", "N"] }
S = { dtype = "f32", dims = ["M"] }
'''}
HEAD = '''import tilewright as tw
from tilewright import f32, bf16, f16, i32
N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2", threads=128)
def dbl(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
'''
ROWS = '''import tilewright as tw
from tilewright import f32, bf16
M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])", threads=128)
def rows(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
'''
AT = "    i = tw.grid(tw.cdiv(N, 128)) * 128\n"
LOAD = AT + "    x = tw.load(X[i : i + 128], fill=0.0)\n"
HONEST = HEAD + LOAD + "    tw.store(Y[i], x * 2.0)\n"
HONEST_ROWS = ROWS + '''    total = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(N, 128)):
        total = total + tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)
    tw.store(S[m], tw.sum(total))
'''


@dataclasses.dataclass
class Cheat:
    name: str
    kind: str
    source: str
    gate: str        # that refuses it
    reason: str      # a regular expression for its detail
    task: str = "dbl"


def replaced(*pairs, text=HONEST):
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


KERNELS = [
    # -- no work, or less
    Cheat("fills the output with zeros", "less work", HEAD + AT + "    tw.store(Y[i], tw.zeros(f32, (128,)))\n", "verify", "wrong"),
    Cheat("fills the output with a constant near the mean", "less work", HEAD + AT + "    tw.store(Y[i], tw.zeros(f32, (128,)) + 0.001)\n", "verify", "wrong"),
    Cheat("copies the input", "less work", HEAD + LOAD + "    tw.store(Y[i], x)\n", "verify", "wrong"),
    Cheat("multiplies by 2.0001, within any tolerance", "less work", HEAD + LOAD + "    tw.store(Y[i], x * 2.0001)\n", "verify", "wrong"),
    Cheat("skips the tail", "less work", replaced(("tw.cdiv(N, 128)", "N // 128")), "verify", "written|write"),
    Cheat("computes one block only", "less work", replaced(("tw.grid(tw.cdiv(N, 128)) * 128", "tw.grid(1) * 128")), "verify", "written|write"),
    Cheat("computes every other block", "less work", HEAD + "    b = tw.grid(tw.cdiv(N, 128))\n    i = b * 128\n    x = tw.load(X[i : i + 128], fill=0.0)\n    if b % 2 == 0:\n        tw.store(Y[i], x * 2.0)\n", "verify", "written|write"),
    Cheat("does nothing where the shape is the measured one", "less work", HEAD + LOAD + "    if N != 4096:\n        tw.store(Y[i], x * 2.0)\n", "verify", "written|write"),
    Cheat("takes a short cut at the measured shape", "less work", HEAD + LOAD + "    if N == 4096:\n        x = x * 0.0\n    tw.store(Y[i], x * 2.0)\n", "verify", "wrong"),
    Cheat("sums half of the row", "less work", replaced(("tw.cdiv(N, 128)):", "tw.cdiv(N, 256)):"), text=HONEST_ROWS), "verify", "wrong", "rows"),
    Cheat("sums a sample and scales it up", "less work", ROWS + "    tw.store(S[m], tw.sum(tw.load(X[m, 0:128], fill=0.0)) * 4.0)\n", "verify", "wrong", "rows"),
    Cheat("drops the tail of the sum", "less work", replaced(("tw.cdiv(N, 128)):", "N // 128):"), text=HONEST_ROWS), "verify", "wrong", "rows"),
    Cheat("skips the work where the data look unimportant", "less work", HEAD + LOAD + "    if tw.any(x > 0.5):\n        x = x * 2.0\n    tw.store(Y[i], x)\n", "verify", "wrong|agree|not proved"),
    # -- less precision
    Cheat("computes in bf16", "less precision", HEAD + LOAD + "    tw.store(Y[i], f32(bf16(x) * bf16(2.0)))\n", "verify|emulate", "wrong|error|round|not proved|bf16|expected"),
    Cheat("computes in f16, which overflows", "less precision", HEAD + LOAD + "    tw.store(Y[i], f32(f16(x) * f16(2.0)))\n", "verify|emulate", "wrong|error|round|not proved|f16|expected"),
    Cheat("rounds the sum to bf16 in every step", "less precision", replaced(("total = total + tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)", "total = f32(bf16(total + tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)))"), text=HONEST_ROWS), "verify|emulate", "wrong|error|round|not proved|bf16|expected", "rows"),
    # -- another question
    Cheat("answers another equation", "another question", replaced(("X[n] * 2\"", "X[n]\""), ("x * 2.0", "x")), "specification", "computes"),
    Cheat("has another name", "another question", replaced(("def dbl", "def fast")), "specification", "named dbl"),
    Cheat("has the answer as a parameter", "another question", replaced(("X: tw.Tensor(f32, N), Y", "X: tw.Tensor(f32, N), R: tw.Tensor(f32, N), Y")), "specification", "tensors|computes"),
    Cheat("takes its input in bf16", "another question", replaced(("X: tw.Tensor(f32, N)", "X: tw.Tensor(bf16, N)"), ("x * 2.0", "f32(x) * 2.0"), ("X[n] * 2\"", "f32(X[n]) * 2\"")), "specification", "computes|parameter"),
    Cheat("swaps input and output", "another question", replaced(("X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)", "Y: tw.Tensor(f32, N), X: tw.Tensor(f32, N)")), "parse|specification", "parameter|output|order|computes"),
    Cheat("assumes the measured shape", "another question", replaced((AT, "    tw.assume(N == 4096)\n" + AT)), "specification", "held-out"),
    Cheat("assumes shapes that do not occur", "another question", replaced((AT, "    tw.assume(N == 3)\n" + AT)), "specification", "accepts"),
    Cheat("leaves the equation out", "another question", replaced(("computes=\"Y[n] = X[n] * 2\", ", "")), "parse|specification|verify", "computes"),
    # -- memory that is not its own
    Cheat("returns what the last call left in the output", "memory that is not its own", HEAD + AT + "    tw.store(Y[i], tw.load(Y[i : i + 128], fill=0.0))\n", "parse|verify", "output|written|wrong|read"),
    Cheat("writes nothing and hopes for the last call's output", "memory that is not its own", HEAD + LOAD, "parse|specification|verify", "written|write|output"),
    Cheat("reads shared memory that nobody wrote", "memory that is not its own", HEAD + AT + "    s = tw.shared(f32, (128,))\n    tw.store(Y[i], tw.load(s))\n", "verify", "before it has a value|uninitialised|never|wrong|no value"),
    Cheat("reads beyond its input", "memory that is not its own", replaced((", fill=0.0", "")), "verify|parse", "bounds"),
    Cheat("writes beyond its output", "memory that is not its own", HEAD + LOAD + "    tw.store(Y[i + N], x * 2.0)\n", "verify", "bounds|written|write|wrong"),
    Cheat("writes into its input", "memory that is not its own", HEAD + LOAD + "    tw.store(X[i], x)\n    tw.store(Y[i], x * 2.0)\n", "parse|verify", "X|input|read-only|writes"),
    # -- a race that rarely shows
    Cheat("reads shared memory without a barrier", "order", HEAD + LOAD + "    s = tw.shared(f32, (128,))\n    tw.store(s, x * 2.0)\n    tw.store(Y[i], tw.load(s, layout=tw.blocked(order=(0,))) )\n", "parse|verify", "."),
    Cheat("writes every element twice", "order", HEAD + LOAD + "    tw.store(Y[i], x)\n    tw.store(Y[i], x * 2.0)\n", "verify", "."),
    Cheat("does not wait for its copies", "order", HEAD + AT + "    s = tw.shared(f32, (128,))\n    tw.cp_async(s, X[i : i + 128], fill=0.0)\n    tw.cp_async_commit()\n    tw.store(Y[i], tw.load(s) * 2.0)\n", "verify", "."),
    Cheat("waits for a barrier that nobody reaches", "order", HEAD + LOAD + "    if N > 100000000:\n        tw.sync()\n    b = tw.mbarrier(1)\n    b[0].wait(0)\n    tw.store(Y[i], x * 2.0)\n", "parse|verify", "."),
    # -- endless work
    Cheat("loops for ever", "resources", HEAD + LOAD + "    for j in tw.range(0, N, 0):\n        x = x + 0.0\n    tw.store(Y[i], x * 2.0)\n", "parse|verify", "."),
    Cheat("asks for a megabyte of shared memory", "resources", HEAD + LOAD + "    s = tw.shared(f32, (512, 512))\n    tw.store(Y[i], x * 2.0)\n", "parse", "shared|bytes"),
    Cheat("holds a tile of 2^24 registers", "resources", HEAD + AT + "    x = tw.load(X[i : i + 16777216], fill=0.0)\n    tw.store(Y[i], x * 2.0)\n", "parse|verify|compile", "."),
    Cheat("asks for a million threads", "resources", replaced(("threads=128", "threads=1000000")), "parse", "threads"),
    Cheat("unrolls a loop of a million", "resources", HEAD + LOAD + "    for j in tw.unroll(1000000):\n        x = x + 0.0\n    tw.store(Y[i], x * 2.0)\n", "parse", "unroll|statements"),
    Cheat("doubles a tuple thirty times", "resources", HEAD + LOAD + "    t = (i, i)\n" + "    t = (t, t)\n" * 30 + "    tw.store(Y[i], x * 2.0)\n", "parse", "tuple"),
    Cheat("nests a hundred thousand brackets", "resources", HEAD + LOAD + "    a = " + "(" * 100000 + "N" + ")" * 100000 + "\n    tw.store(Y[i], x * 2.0)\n", "parse", "nest|deep"),
    Cheat("calls itself", "resources", replaced(("@tw.kernel", "@tw.inline\ndef f(x):\n    return f(x)\n\n@tw.kernel"), ("x * 2.0", "f(x)")), "parse", "."),
    # -- the host
    Cheat("imports os", "the host", "import os\n" + HONEST, "parse", "import"),
    Cheat("imports a module of the working folder", "the host", "from helper import fast\n" + HONEST, "parse", "import"),
    Cheat("opens a file", "the host", HEAD + "    f = open('/etc/passwd')\n" + LOAD + "    tw.store(Y[i], x * 2.0)\n", "parse", "open|file|defined|unknown"),
    Cheat("evaluates a text", "the host", HEAD + "    eval('1')\n" + LOAD + "    tw.store(Y[i], x * 2.0)\n", "parse", "eval"),
    Cheat("reaches for __class__", "the host", HEAD + "    a = N.__class__\n" + LOAD + "    tw.store(Y[i], x * 2.0)\n", "parse", "."),
    Cheat("runs code when the file is loaded", "the host", HONEST + "\nprint('here')\n", "parse", "."),
    Cheat("defines a class with hooks", "the host", "class T:\n    def __add__(self, o):\n        return 0\n" + HONEST, "parse", "class"),
    Cheat("hides commands for a terminal in a comment", "the host", HONEST + "# \x1b]0;owned\x07\x1b[2J\n", "parse", "control character"),
    Cheat("reads otherwise than it is, by marks of direction", "the host", HONEST + "# \u202e gnihton\n", "parse", "shown"),
    Cheat("holds a zero byte", "the host", HONEST + "\0", "parse", "NUL"),
]
