"""run, bench, tune and the worker on a GPU: right kernels, wrong ones, and those that hang or fault."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", str(SOURCE / "build" / "bin" / "tilewright"))
KERNELS = SOURCE / "kernels"


def run(*words, stdin=None, timeout=200, **variables):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=timeout, input=stdin, env={**os.environ, **variables}, cwd=SOURCE)


def has_gpu():
    if not os.path.exists(PROGRAM):
        return False
    done = run("doctor", "--json")
    return bool(json.loads(done.stdout)["gpus"])


HAS_GPU = has_gpu()


@unittest.skipUnless(HAS_GPU, "needs a GPU")
class Commands(unittest.TestCase):
    def test_right_and_wrong(self):
        done = run("run", KERNELS / "softmax.py", "--target", "gpu", "--check", "--set", "M=37,N=300", "--seeds", "2", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for evidence in json.loads(done.stdout)["results"]:
            output = evidence["check"]["outputs"][0]
            self.assertEqual((output["compared"], output["unwritten"], output["stray_bytes"]), (37 * 300, 0, 0))
            self.assertLess(output["worst"], output["tolerance"])
        for bug, sizes in (("zero_fill_before_exp", "M=3,N=100"), ("grid_misses_the_last_tile", None), ("last_chunk_dropped", None)):
            file = SOURCE / "tests" / "verify" / "bugs" / (bug + ".py")
            if sizes is None:
                names = [n for n in ("M", "N", "K") if f"{n}," in file.read_text() or f"{n})" in file.read_text()]
                sizes = ",".join(f"{n}=100" for n in names)
            done = run("run", file, "--target", "gpu", "--set", sizes)
            self.assertEqual(done.returncode, 1, bug + done.stdout + done.stderr)
            self.assertIn("WRONG", done.stdout)

    def test_a_hang_a_fault_and_a_refusal_cost_themselves_only(self):
        good = {"file": str(KERNELS / "vector_add.py"), "sizes": {"N": 1000}}
        hang = {"file": str(SOURCE / "tests" / "verify" / "bugs" / "one_iteration_deadlock.py"), "sizes": {"M": 64, "N": 64, "K": 64}, "timeout_s": 5}
        fault = {"file": str(KERNELS / "grouped_gemm_sm80.py"), "sizes": {"T": 64, "P": 64, "E": 2, "N": 64, "K": 64, "TILES": 2},
                 "inputs": {"tile_first": [2000000000] * 2, "tile_end": [64, 64]}}
        refused = {"file": str(KERNELS / "gemm_sm80.py"), "sizes": {"M": 64, "N": 64}}
        requests = [good, hang, good, fault, good, refused, good]
        done = run("bench", "--requests", "-", stdin="".join(json.dumps(r) + "\n" for r in requests))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([a["status"] for a in answers], ["right", "timed out", "right", "fault", "right", "refused", "right"], answers)
        self.assertIn("did not end within 5 s", answers[1]["message"])
        self.assertIn("ILLEGAL_ADDRESS", answers[3]["message"])
        self.assertEqual([a.get("worker") for a in answers if a["status"] == "right"], [1, 2, 3, 3])

    def test_bench_gives_its_evidence(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "e.json")
            done = run("bench", KERNELS / "gemm_sm80.py", "--set", "M=2048,N=2048,K=2048", "--against", "cublaslt", "--heuristics", "8", "--rounds", "10", "--json", out)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(out) as f:
                e = json.load(f)
        self.assertLessEqual(e["timing"]["interval"][0], e["us"])
        self.assertLessEqual(e["us"], e["timing"]["interval"][1])
        self.assertTrue(e["peer"]["right"])
        self.assertAlmostEqual(e["ratio"], e["peer"]["us"] / e["us"], delta=0.1 * e["ratio"])
        self.assertEqual(e["timed_check"]["unwritten"], 0)
        self.assertEqual(e["timing"]["l2"], "cold")
        for field in ("resources", "roofline", "versions", "command", "check", "computes"):
            self.assertIn(field, e)

    def test_one_against_another_file_and_itself(self):
        done = run("bench", KERNELS / "softmax.py", "--set", "M=8192,N=1024", "--against", KERNELS / "softmax.py", "--json", "-")
        e = json.loads(done.stdout)
        self.assertAlmostEqual(e["ratio"], 1.0, delta=0.03)
        done = run("bench", KERNELS / "softmax.py", "--set", "M=64,N=64", "--against", KERNELS / "vector_add.py")
        self.assertEqual(done.returncode, 2, done.stdout)

    def test_a_peer_that_does_a_part_of_the_work(self):
        request = {"file": str(KERNELS / "gemm_fused_sm90.py"), "kernel": "gemm_bias", "sizes": {"M": 2048, "N": 2048, "K": 2048}, "time": True, "rounds": 10,
                   "against": {"file": str(KERNELS / "gemm_sm90.py"), "kernel": "gemm", "part": 1}}
        twice = dict(request, against=dict(request["against"], part=2))
        other_names = dict(request, against={"file": str(KERNELS / "softmax.py"), "kernel": "softmax", "part": 1})
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
            f.write("".join(json.dumps(r) + "\n" for r in (request, twice, other_names)))
            f.flush()
            once, two, refused = (json.loads(line) for line in run("bench", "--requests", f.name).stdout.splitlines())
        self.assertEqual((once["status"], two["status"], refused["status"]), ("right", "right", "refused"))
        self.assertNotIn("right", once["peer"])   # the bias is missing from its output
        self.assertAlmostEqual(two["peer"]["us"] / once["peer"]["us"], 2.0, delta=0.2)
        self.assertIn("no parameter named", refused["message"])

    def test_tune_stores_what_python_uses(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "vector_add.py")
            shutil.copy(KERNELS / "vector_add.py", file)
            words = ("tune", file, "--shape", "N=1000003", "--shape", "N=1000", "--rounds", "4", "--finalists", "1")
            done = run(*words, TILEWRIGHT_CACHE=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(os.path.join(folder, "vector_add.tuned.json")) as f:
                entries = json.load(f)["entries"]
            self.assertEqual({e["sizes"]["N"] for e in entries}, {1000, 1000003})
            again = run(*words, TILEWRIGHT_CACHE=folder)
            self.assertNotIn("[1] ", again.stdout)
            try:
                import torch
            except ImportError:
                return
            sys.path.insert(0, str(SOURCE / "python"))
            import tilewright
            a = torch.randn(5001, device="cuda")
            c = torch.full_like(a, float("nan"))
            tilewright.load(file).vector_add(a, a, c)
            self.assertTrue(torch.equal(c, a + a))

    def test_sanitizers(self):
        if not shutil.which("compute-sanitizer"):
            self.skipTest("compute-sanitizer is not in PATH")
        for tool in ("memcheck", "racecheck", "synccheck"):
            done = run("run", KERNELS / "softmax.py", "--sanitizer", tool, "--set", "M=5,N=300", "--timeout", "120", "--json")
            result = json.loads(done.stdout)
            self.assertEqual((done.returncode, result.get("errors")), (0, 0), (tool, result))

    def test_profile(self):
        done = run("bench", KERNELS / "softmax.py", "--set", "M=4096,N=1024", "--rounds", "5", "--profile", "--json", "-")
        profile = json.loads(done.stdout)["profile"]
        if profile["source"] == "ncu":
            metrics = next(iter(profile["kernels"].values()))
            self.assertGreater(metrics["gpu__time_duration.sum"]["value"], 0)
        else:
            self.assertTrue(profile["why"])


@unittest.skipUnless(HAS_GPU, "needs a GPU")
class ShippedKernels(unittest.TestCase):
    def test_all_are_right(self):
        done = subprocess.run([sys.executable, SOURCE / "bench" / "check_kernels.py", PROGRAM], capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
