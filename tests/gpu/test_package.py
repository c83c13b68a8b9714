"""The Python package on a GPU: kernels called with torch tensors, refusals in words, streams and graphs."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

try:
    import torch

    HAS_GPU = torch.cuda.is_available()
except ImportError:
    HAS_GPU = False

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import own_kernel  # noqa: E402
import tilewright  # noqa: E402


def kernels(name, **constants):
    return tilewright.load(os.path.join(ROOT, "kernels", name + ".py"), **constants)


@unittest.skipUnless(HAS_GPU, "needs torch and a GPU")
class Package(unittest.TestCase):
    def test_vector_add_on_odd_sizes(self):
        add = kernels("vector_add").vector_add
        for n in (1, 5, 1023, 4099):
            a, b = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
            c = torch.full((n,), float("nan"), device="cuda")
            add(a, b, c)
            self.assertTrue(torch.equal(c, a + b), n)

    def test_softmax_takes_the_variant_that_fits(self):
        softmax = kernels("softmax").softmax
        self.assertEqual(len(softmax.variants), 2)
        for n in (100, 3000):
            x = torch.randn(7, n, device="cuda")
            y = torch.full_like(x, float("nan"))
            softmax(X=x, Y=y)
            self.assertLess((y.double() - torch.softmax(x.double(), -1)).norm().item(), 1e-5)

    def test_gemm_and_constants(self):
        a = torch.randn(200, 136, device="cuda").bfloat16()
        b = torch.randn(264, 136, device="cuda").bfloat16()
        want = a.float() @ b.float().t()
        for constants in ({}, dict(BN=128)):
            c = torch.full((200, 264), float("nan"), device="cuda", dtype=torch.bfloat16)
            kernels("gemm_sm90", **constants).gemm(a, b, c)
            self.assertLess(((c.float() - want).norm() / want.norm()).item(), 5e-3)

    def test_zeroed_outputs(self):
        x = torch.randn(300, 100, device="cuda")
        s = torch.full((100,), float("nan"), device="cuda")
        kernels("reductions").column_sum_atomic(x, s)
        self.assertLess((s.double() - x.double().sum(0)).abs().max().item(), 1e-3)

    def test_graphs_and_streams(self):
        add = kernels("vector_add").vector_add
        a, b, c = (torch.randn(1000, device="cuda") for _ in range(3))
        add(a, b, c)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add(a, b, c)
        c.zero_()
        graph.replay()
        self.assertTrue(torch.equal(c, a + b))

    def test_refusals_name_the_argument(self):
        gemm = kernels("gemm_sm90").gemm
        a = torch.randn(64, 64, device="cuda").bfloat16()
        c = torch.empty(64, 64, device="cuda", dtype=torch.bfloat16)
        for wrong, words in (((a.float(), a, c), "A is f32"), ((a, a[:, :32], c), "B"), ((a, a, a), "share memory"), ((a, a.cpu(), c), "B is on cpu")):
            with self.assertRaises(tilewright.TilewrightError) as caught:
                gemm(*wrong)
            self.assertIn(words, str(caught.exception))

    def test_promised_contents_are_checked_where_asked(self):
        loss = kernels("cross_entropy").cross_entropy
        x = torch.randn(5, 300, device="cuda")
        target = torch.randint(0, 300, (5,), device="cuda", dtype=torch.int32)
        out = torch.full((5,), float("nan"), device="cuda")
        os.environ["TILEWRIGHT_CHECK_CONTENTS"] = "1"
        try:
            loss(X=x, target=target, loss=out)
            want = torch.nn.functional.cross_entropy(x.double(), target.long(), reduction="none")
            self.assertLess((out.double() - want).abs().max().item(), 1e-4)
            target[3] = 300
            with self.assertRaises(tilewright.TilewrightError) as caught:
                loss(X=x, target=target, loss=out)
            self.assertIn("target", str(caught.exception))
        finally:
            del os.environ["TILEWRIGHT_CHECK_CONTENTS"]

    def test_every_element_type_of_a_kernel(self):
        for dtype, limit in ((torch.bfloat16, 5e-3), (torch.float32, 1e-6)):
            x = torch.randn(9, 777, device="cuda").to(dtype)
            y = torch.full_like(x, float("nan"))
            kernels("softmax_sm90").softmax(X=x, Y=y)
            self.assertLess((y.double() - torch.softmax(x.double(), -1)).norm().item() / 3, limit)

    def test_tensors_of_another_framework(self):
        class Foreign:
            """Shows DLPack and nothing else."""

            def __init__(self, tensor):
                self.tensor = tensor

            def __dlpack__(self, stream=None):
                return self.tensor.__dlpack__(stream=stream)

            def __dlpack_device__(self):
                return self.tensor.__dlpack_device__()

        a, b = torch.randn(1001, device="cuda"), torch.randn(1001, device="cuda")
        c = torch.full((1001,), float("nan"), device="cuda")
        kernels("vector_add").vector_add(Foreign(a), Foreign(b), Foreign(c))
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(c, a + b))

    def test_a_kernel_in_a_file_of_ones_own(self):
        x = torch.randn(777, device="cuda")
        y = torch.full_like(x, float("nan"))
        own_kernel.twice(x, y)
        self.assertTrue(torch.equal(y, x * 2))


if __name__ == "__main__":
    unittest.main()
