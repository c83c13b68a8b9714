"""`run --target gpu`, `bench` and `tune` as a user meets them on a machine without a GPU, and what they refuse anywhere."""
import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
KERNELS = SOURCE / "kernels"
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def run(*words, stdin=None, **variables):
    # Without the driver, so that this says the same on every machine.
    environment = {**os.environ, "TILEWRIGHT_HIDE": "driver", **variables}
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, input=stdin, env=environment, cwd=SOURCE)


def test_no_gpu_is_said_and_static_figures_are_given():
    done = run("run", KERNELS / "softmax.py", "--target", "gpu", "--check", "--set", "M=4,N=64", "--json")
    assert done.returncode == 3, done.stderr
    evidence = json.loads(done.stdout)
    assert evidence["status"] == "no gpu" and "driver" in evidence["fix"]
    assert [r["variant"] for r in evidence["resources"]] == [0, 1]
    if "problem" not in evidence["resources"][0]:  # NVRTC is here
        assert evidence["resources"][0]["registers"] > 0 and evidence["resources"][0]["spill_bytes"] == 0
    done = run("bench", KERNELS / "softmax.py", "--set", "M=4,N=64", "--against", "cublaslt")
    assert done.returncode == 3 and "no gpu" in done.stdout and "shared memory" in done.stdout


def test_without_driver_and_nvrtc_it_still_answers():
    done = run("run", KERNELS / "softmax.py", "--target", "gpu", "--set", "M=4,N=64", "--json", TILEWRIGHT_HIDE="driver,nvrtc")
    assert done.returncode == 3
    assert "NVRTC" in json.loads(done.stdout)["resources"][0]["problem"] or "nvrtc" in json.loads(done.stdout)["resources"][0]["problem"]


def test_bad_usage_is_status_2_and_names_what_is_missing():
    for words, said in ((("run", KERNELS / "softmax.py", "--target", "gpu", "--set", "M=4"), "size N has no value"),
                        (("run", KERNELS / "softmax.py", "--target", "moon", "--set", "M=4,N=4"), "there is no target 'moon'"),
                        (("bench", KERNELS / "reductions.py", "--set", "M=4,N=4"), "several kernels"),
                        (("bench", KERNELS / "softmax.py", "--set", "M=four,N=4"), "M is a size and takes a whole number"),
                        (("bench", KERNELS / "softmax.py", "--set", "M=bf16,N=4"), "M is a size"),
                        (("bench", KERNELS / "softmax.py", "--set", "M=4,N=4", "--scalar", "x"), "NAME=NUMBER"),
                        (("bench", KERNELS / "softmax.py", "--set", "M=4,N=4", "--scalar", "x=2"), "no scalar parameter"),
                        (("bench", "no/such.py", "--set", "M=4"), "no/such.py"),
                        (("bench",), "no kernel file"),
                        (("bench", KERNELS / "softmax.py@BM=1,NOPE=3", "--set", "M=4,N=4"), "NOPE"),
                        (("bench", KERNELS / "softmax.py", "--set", "M=4,N=4", "--against", "torch"), "--torch"),
                        (("bench", "--suite", "nothing"), "suites are"),
                        (("tune", KERNELS / "softmax.py"), "has no value")):
        done = run(*words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert said in done.stdout + done.stderr, (words, done.stdout, done.stderr)


def test_requests_are_answered_line_by_line_and_one_bad_does_not_end_it():
    kernel = str(KERNELS / "vector_add.py")
    lines = [json.dumps({"file": kernel, "sizes": {"N": 100}}), "not json", json.dumps({"text": "def ("}), json.dumps({"file": kernel, "sizes": {}}), json.dumps([1])]
    done = run("bench", "--requests", "-", stdin="\n".join(lines) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["status"] for a in answers] == ["no gpu", "refused", "rejected", "refused", "refused"]
    assert "size N has no value" in answers[3]["message"]


def test_candidates_in_one_worker():
    done = run("bench", KERNELS / "vector_add.py", "--set", "N=1000", "--candidate", f"{KERNELS / 'vector_add.py'}@BLOCK=256", "--json", "-")
    results = json.loads(done.stdout)["results"]
    assert done.returncode == 3 and len(results) == 2 and results[1]["constants"] == {"BLOCK": 256}
    assert results[0]["worker"] == results[1]["worker"] == 1
    assert results[0]["command"].startswith("tilewright bench ")


def test_suites_are_well_formed_and_give_their_schema(tmp_path):
    for suite in ("gemm", "attention", "grouped", "memory"):
        cases = json.loads((SOURCE / "bench" / "suites" / f"{suite}.json").read_text())["cases"]
        assert cases and len({c["case"] for c in cases}) == len(cases), suite
        for c in cases:
            assert (SOURCE / c["file"]).exists(), c
    first = json.loads((SOURCE / "bench" / "suites" / "memory.json").read_text())["cases"][0]["case"]
    done = run("bench", "--suite", "memory", "--only", first, "--json", tmp_path / "out.json", "--svg", tmp_path / "out.svg")
    assert done.returncode == 3, done.stdout + done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["command"].startswith("tilewright bench --suite memory") and {"case", "peer", "notes", "status"} <= result["cases"][0].keys()
    assert (tmp_path / "out.svg").read_text().startswith("<svg")


def test_tune_proves_every_point_and_resumes(tmp_path):
    words = ("tune", KERNELS / "vector_add.py", "--shape", "N=1000", "--jobs", "2", "--json", tmp_path / "points.json")
    first = run(*words, TILEWRIGHT_CACHE=str(tmp_path / "cache"))
    assert first.returncode == 3 and first.stdout.count(": proved") >= 4, first.stdout + first.stderr
    points = json.loads((tmp_path / "points.json").read_text())["points"]
    assert {p["constants"]["BLOCK"] for p in points} == {256, 512, 1024, 2048} and all(p["verdict"] == "proved" for p in points)
    again = run(*words, TILEWRIGHT_CACHE=str(tmp_path / "cache"))
    assert "[1] " not in again.stdout  # every verdict was known
    dry = run("tune", KERNELS / "vector_add.py", "--dry-run", "--jobs", "2", TILEWRIGHT_CACHE=str(tmp_path / "cache"))
    assert dry.returncode == 0 and "nothing was verified" in dry.stdout


def test_tune_never_runs_what_is_wrong(tmp_path):
    broken = tmp_path / "broken.py"
    text = (KERNELS / "vector_add.py").read_text().replace("tw.store(C[i : i + BLOCK], a + b)", "tw.store(C[i : i + BLOCK], a + b if BLOCK > 256 else a)")
    broken.write_text(text)
    done = run("tune", broken, "--shape", "N=1000", "--jobs", "2", TILEWRIGHT_CACHE=str(tmp_path / "cache"))
    assert "BLOCK=256: violated" in done.stdout, done.stdout + done.stderr
    assert "BLOCK=512: proved" in done.stdout


@pytest.mark.parametrize("suite", ["gemm", "attention", "grouped", "memory"])
def test_a_committed_result_is_drawn(suite, tmp_path):
    """The pictures in docs are those of the committed figures."""
    results = SOURCE / "bench" / "results" / "h200" / f"{suite}.json"
    done = run("bench", "--draw", results, "--svg", tmp_path / "out.svg")
    assert done.returncode == 0, done.stderr
    picture = (tmp_path / "out.svg").read_text()
    assert picture.count("data-ratio=") == sum(c.get("ratio") is not None for c in json.loads(results.read_text())["cases"])
    assert picture == (SOURCE / "docs" / "images" / f"{suite}.svg").read_text(), f"tilewright bench --draw bench/results/h200/{suite}.json --svg docs/images/{suite}.svg"


def test_what_is_no_result_is_not_drawn(tmp_path):
    for text in ("", "[]", '{"cases": [{"ratio": "x"}], "versions": {}}', '{"cases": [{"case": "a", "ratio": 1}], "versions": {}}', "\0"):
        (tmp_path / "bad.json").write_text(text)
        done = run("bench", "--draw", tmp_path / "bad.json", "--svg", tmp_path / "out.svg")
        assert done.returncode == 2 and "suite's result" in done.stderr, (text, done)


def test_suite_inputs_fit_one_another():
    made = subprocess.run(["python3", SOURCE / "bench" / "suite_inputs.py", "routed_tiles", json.dumps({"T": 40, "P": 80, "E": 4, "TILES": 8}), json.dumps({"top_k": 2, "balanced": False, "tile": 16})],
                          capture_output=True, text=True, timeout=60)
    inputs = json.loads(made.stdout)
    assert inputs["expert"] == sorted(inputs["expert"]) and len(inputs["rows"]) == 80
    covered = []
    for first, end in zip(inputs["tile_first"], inputs["tile_end"]):
        covered += range(first, min(first + 16, end))
    assert covered == list(range(80))
