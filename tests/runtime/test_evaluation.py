"""The steps of an evaluation on the GPU, on a driver that does nothing: what is asked, in which order, and what the evidence says. The numbers mean
nothing; that the parts are there and agree does."""
import json
import os
import shutil
import subprocess

import pytest

ROOT = os.environ.get("TILEWRIGHT_SOURCE", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", os.path.join(ROOT, "build", "bin", "tilewright"))
compiler = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(not compiler, reason="no C compiler for the fake driver")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    out = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", os.path.join(ROOT, "tests", "runtime", "fake_driver.c"), "-o", str(out)], check=True)
    return out


def evidence(driver, tmp_path, *words):
    log = tmp_path / "log"
    environment = dict(os.environ, TILEWRIGHT_DRIVER=str(driver), FAKE_DRIVER_LOG=str(log), FAKE_DRIVER_ZEROS="1", TILEWRIGHT_PASS="FAKE_DRIVER_LOG,FAKE_DRIVER_ZEROS",
                       TILEWRIGHT_BOX_WRITE=str(tmp_path))
    done = subprocess.run([PROGRAM, *words], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    said = json.loads(done.stdout)
    if "nvrtc" in json.dumps(said).lower() and said.get("status") == "no gpu":
        pytest.skip("no NVRTC")
    return done.returncode, said, log.read_text().splitlines() if log.exists() else []


def test_a_candidate_is_checked_timed_and_checked_again(driver, tmp_path):
    code, said, log = evidence(driver, tmp_path, "bench", "kernels/vector_add.py", "--set", "N=102400", "--json", "-")
    assert code == 0 and said["status"] == "right"
    assert [o["output"] for o in said["check"]["outputs"]] == ["C"] and said["check"]["outputs"][0]["compared"] > 0
    assert said["timing"]["rounds"] > 1 and said["timing"]["sets"] > 1 and said["us"] == said["timing"]["us"]
    assert said["timed_check"]["unwritten"] == 0 and "outputs_of_last_set" in said["timed_check"]
    assert {"compile", "prepare", "run", "check", "measure"} <= set(said["stages"])
    assert said["roofline"]["bound"] == "memory" and said["resources"][0]["threads"] > 0 and "ratio" not in said
    assert sum(line.startswith("launch") for line in log) > said["timing"]["sets"]


def test_a_peer_runs_on_the_same_inputs_and_is_judged(driver, tmp_path):
    code, said, _ = evidence(driver, tmp_path, "bench", "kernels/vector_add.py", "--set", "N=102400", "--against", "kernels/vector_add.py@BLOCK=256", "--json", "-")
    assert code == 0 and said["peer"]["right"] and said["peer"]["constants"] == {"BLOCK": 256}
    assert said["ratio"] == 1.0 and said["ratio_interval"] == [1.0, 1.0]  # every graph lasts a millisecond here


def test_what_is_changed_in_place_is_made_again_before_it_is_judged(driver, tmp_path):
    code, said, _ = evidence(driver, tmp_path, "bench", "kernels/training_sm90.py", "--kernel", "adam", "--set", "N=4096", "--json", "-")
    assert code == 0 and said["status"] == "right" and said["timed_check"]["unwritten"] == 0
    assert len(said["check"]["outputs"]) > 1


def test_a_peer_that_takes_other_parameters_is_refused(driver, tmp_path):
    code, said, _ = evidence(driver, tmp_path, "bench", "kernels/vector_add.py", "--set", "N=102400", "--against", "kernels/softmax.py", "--json", "-")
    assert code == 2 and said["status"] == "refused" and said["message"].startswith("the peer:")
