"""What the GPU's judge can be fooled by, and what a launch does to memory: NaN against NaN, outputs that are read, integers, places that are found and left out, gaps between rows,
tensors of more than 2^31 elements, names that CUDA has already."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", str(SOURCE / "build" / "bin" / "tilewright"))
sys.path.insert(0, str(SOURCE / "python"))
try:
    import torch

    HAS_TORCH = torch.cuda.is_available()
except ImportError:
    HAS_TORCH = False

HEAD = """import tilewright as tw
from tilewright import bf16, f32, i32

M, N = tw.sizes("M N")


"""


def kernel(computes, value, parameters="X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)", load="x = tw.load(X[i : i + 32], fill=0.0)", name="k"):
    return HEAD + f"""@tw.kernel(target="sm_80", computes="{computes}", threads=32)
def {name}({parameters}):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    {load}
    tw.store(Y[i : i + 32], {value})
"""


ROOT_OF_NEGATIVES = "Y[n] = sqrt(-1.0 - X[n] * X[n])"
COPY = kernel("Y[n] = X[n]", "x", name="copy")

TOP_TWO = HEAD + """@tw.kernel(
    target="sm_80",
    computes="let s[m, n] = X[m, n] * Z[n] + 0.3; let a[m] = argmax(e in 0:N, s[m, e]); let b[m] = argmax(e in 0:N, where(e == a[m], -inf, s[m, e])); Y[m, n] = where(n == a[m] or n == b[m], s[m, n], 0.0)",
    threads=32,
)
def top_two(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 64)
    m = tw.grid(tw.cdiv(M, 4)) * 4
    s = tw.load(X[m : m + 4, 0:64], fill=0.0) * tw.load(Z[0:64], fill=0.0)[None, :] + 0.3
    a = tw.argmax(s, axis=1, limit=N)
    rest = tw.where(tw.coord(s, 1) == a[:, None], float("-inf"), s)
    b = tw.argmax(rest, axis=1, limit=N)
    chosen = (tw.coord(s, 1) == a[:, None]) | (tw.coord(s, 1) == b[:, None])
    tw.store(Y[m : m + 4, 0:64], tw.where(chosen, s, 0.0))
"""

IN_PLACE = "Y[n] = Y[n] + X[n]"
OWN = "tw.load(Y[i : i + 32], fill=0.0)"

ROWS = HEAD + """@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2.0", threads=128)
def padded(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N, strides=((N + 7) // 8 * 8, 1))):
    m, n = tw.grid(M, tw.cdiv(N, 128))
    tw.store(Y[m, n * 128 : n * 128 + 128], tw.load(X[m, n * 128 : n * 128 + 128], fill=0.0) * 2.0)
"""


def program_around(name):
    return COPY + kernel("Y[n] = 2.0 * X[n]", "x * 2.0", name=name)[len(HEAD):] + f"""

@tw.program(computes="Y[n] = 2.0 * X[n]")
def whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    copy(X, T)
    {name}(T, Y)
"""


def evaluate(*requests):
    done = subprocess.run([PROGRAM, "bench", "--requests", "-"], capture_output=True, text=True, timeout=300, input="".join(json.dumps(r) + "\n" for r in requests), cwd=SOURCE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def has_gpu():
    if not os.path.exists(PROGRAM):
        return False
    return bool(json.loads(subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True, cwd=SOURCE).stdout)["gpus"])


@unittest.skipUnless(has_gpu(), "needs a GPU")
class Judge(unittest.TestCase):
    def statuses(self, *texts, sizes=None):
        answers = evaluate(*({"text": t, "name": "k.py", "sizes": sizes or {"N": 100}} for t in texts))
        return [a["status"] for a in answers], answers

    def test_nan_is_right_only_where_it_was_written_and_meant(self):
        got, answers = self.statuses(
            kernel(ROOT_OF_NEGATIVES, "tw.sqrt(-1.0 - x * x)"),
            kernel(ROOT_OF_NEGATIVES, "x"),
            kernel("Y[n] = X[n]", "tw.sqrt(-1.0 - x * x)"),
            kernel(ROOT_OF_NEGATIVES, "tw.sqrt(-1.0 - x * x)").replace("tw.cdiv(N, 32)", "tw.cdiv(N, 32) - 1"),
        )
        self.assertEqual(got, ["right", "wrong", "wrong", "wrong"], answers)

    def test_outputs_that_are_read_start_with_data(self):
        got, answers = self.statuses(kernel(IN_PLACE, OWN + " + x"), kernel(IN_PLACE, OWN), kernel(IN_PLACE, "x"))
        self.assertEqual(got, ["right", "wrong", "wrong"], answers)

    def test_in_place_is_timed_and_judged_from_the_start(self):
        answer = evaluate({"text": kernel(IN_PLACE, OWN + " + x"), "name": "k.py", "sizes": {"N": 4096}, "time": True})[0]
        self.assertEqual(answer["status"], "right", answer)

    def test_integers_are_not_all_zero(self):
        ints = "X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)"
        got, answers = self.statuses(
            kernel("Y[n] = X[n]", "x", ints, "x = tw.load(X[i : i + 32], fill=0)"),
            kernel("Y[n] = X[n]", "tw.full(i32, (32,), 0)", ints, "x = tw.load(X[i : i + 32], fill=0)"),
            kernel("Y[n] = X[n]", "tw.maximum(x, 0)", ints, "x = tw.load(X[i : i + 32], fill=0)"),
        )
        self.assertEqual(got, ["right", "wrong", "wrong"], answers)

    def test_places_that_are_found_and_left_out(self):
        got, answers = self.statuses(TOP_TWO, sizes={"M": 50, "N": 40})
        self.assertEqual(got, ["right"], answers)

    def test_gaps_between_rows_stay_as_they_are(self):
        answers = evaluate({"text": ROWS, "name": "k.py", "sizes": {"M": 33, "N": 100}}, {"text": ROWS.replace("* 2.0)\n", "* 2.5)\n"), "name": "k.py", "sizes": {"M": 33, "N": 100}})
        self.assertEqual([a["status"] for a in answers], ["right", "wrong"], answers)
        self.assertEqual(answers[0]["check"]["outputs"][0]["stray_bytes"], 0)

    def test_names_that_cuda_has_do_not_end_the_worker(self):
        good = {"text": COPY, "name": "k.py", "sizes": {"N": 100}, "kernel": "copy"}
        for name in ("double", "trunc", "int", "main", "float4"):
            answers = evaluate(good, {"text": program_around(name), "name": "k.py", "sizes": {"N": 100}, "kernel": "whole"}, good)
            self.assertEqual([answers[0]["status"], answers[2]["status"]], ["right", "right"], (name, answers))
            self.assertEqual(answers[0]["worker"], answers[2]["worker"], (name, answers))
            self.assertNotIn(answers[1]["status"], ("crashed", "timed out"), (name, answers))

    def test_a_kernel_that_does_not_compile_is_an_answer(self):
        """Shared memory that no GPU has in the second launch of a program."""
        text = COPY + """

@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=32)
def large(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(f32, (25000,))
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(Y[i : i + 32], tw.load(X[i : i + 32], fill=0.0))


@tw.program(computes="Y[n] = X[n]")
def whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    copy(X, T)
    large(T, Y)
"""
        good = {"text": COPY, "name": "k.py", "sizes": {"N": 100}, "kernel": "copy"}
        answers = evaluate({"text": text, "name": "k.py", "sizes": {"N": 100}, "kernel": "whole"}, good)
        self.assertNotIn(answers[0]["status"], ("crashed", "timed out"), answers)
        self.assertEqual(answers[1]["status"], "right", answers)


@unittest.skipUnless(HAS_TORCH, "needs torch and a GPU")
class Memory(unittest.TestCase):
    def load(self, text):
        import tempfile

        import tilewright

        folder = tempfile.mkdtemp()
        file = os.path.join(folder, "kernels.py")
        pathlib.Path(file).write_text(text)
        return tilewright.load(file)

    def test_more_elements_than_an_int_counts(self):
        """Rows beyond 2^31 elements, strides that are a sum and a product of sizes."""
        text = HEAD + """@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N, strides=(N + 64, 1))):
    m, n = tw.grid(M, tw.cdiv(N, 4096))
    tw.store(Y[m, n * 4096 : n * 4096 + 4096], tw.load(X[m, n * 4096 : n * 4096 + 4096], fill=0.0))
"""
        m, n = 70000, 40000   # 2.8e9 elements
        if torch.cuda.mem_get_info()[0] < 3 * 2 * m * (n + 64):
            self.skipTest("not enough GPU memory")
        x = torch.randint(0, 100, (m, n), device="cuda", dtype=torch.int8).to(torch.bfloat16)
        y = torch.zeros(m, n + 64, device="cuda", dtype=torch.bfloat16)[:, :n]
        self.load(text).copy(x, y)
        for row in (0, 1, 53687, m - 1):
            self.assertTrue(torch.equal(x[row], y[row]), row)

    def test_outputs_whose_elements_meet_are_refused(self):
        import tilewright

        copy = self.load(HEAD + """@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=32)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m, n = tw.grid(M, tw.cdiv(N, 32))
    tw.store(Y[m, n * 32 : n * 32 + 32], tw.load(X[m, n * 32 : n * 32 + 32], fill=0.0))
""").copy
        x = torch.randn(8, 32, device="cuda")
        expanded = torch.empty(1, 32, device="cuda").expand(8, 32)
        overlapping = torch.empty(8 * 32, device="cuda").as_strided((8, 32), (31, 1))
        for y in (expanded, overlapping):
            with self.assertRaises(tilewright.TilewrightError) as caught:
                copy(x, y)
            self.assertIn("one place in memory", str(caught.exception))

    def test_zeroed_outputs_with_gaps_leave_the_gaps_alone(self):
        text = HEAD + """@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=32)
def added(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N, strides=(N + 8, 1), zeroed=True)):
    m, n = tw.grid(M, tw.cdiv(N, 32))
    tw.atomic_add(Y[m, n * 32 : n * 32 + 32], tw.load(X[m, n * 32 : n * 32 + 32], fill=0.0))
"""
        x = torch.randn(5, 100, device="cuda")
        whole = torch.full((5, 108), 7.0, device="cuda")
        self.load(text).added(x, whole[:, :100])
        self.assertTrue(torch.equal(whole[:, :100], x))
        self.assertTrue((whole[:, 100:] == 7.0).all())


if __name__ == "__main__":
    unittest.main()
