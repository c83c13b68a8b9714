"""Disks that fill up, compiles that are killed, libraries that are missing: each is said, and the next run works."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
KERNEL = SOURCE / "kernels" / "softmax.py"
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def run(*words, **variables):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120, env={**os.environ, **variables})


def has_nvrtc():
    report = json.loads(run("doctor", "--json").stdout)
    return any(f["part"] == "NVRTC" and f["present"] for f in report["findings"])


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 32 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", folder], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("no file system can be mounted here: " + made.stderr.strip())
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_costs_the_cache_and_not_the_result(small_disk):
    if not has_nvrtc():
        pytest.skip("NVRTC is not on this machine")
    (small_disk / "filler").write_bytes(b"x" * 28000)
    done = run("emit", KERNEL, "--to", "report", "--json", TILEWRIGHT_CACHE=str(small_disk / "cache"))
    assert done.returncode == 0, done.stderr
    reports = [k["report"] for k in json.loads(done.stdout)["kernels"]]
    assert any("No space left" in r["cache_note"] for r in reports), reports
    assert all(r["kernels"][0]["registers"] > 0 for r in reports)
    assert not [f for f in os.listdir(small_disk / "cache") if ".tmp" in f]


def test_evidence_that_cannot_be_written_is_status_2(small_disk):
    (small_disk / "filler").write_bytes(b"x" * 31000)
    done = run("bench", KERNEL, "--set", "M=4,N=64", "--json", small_disk / "out.json", TILEWRIGHT_HIDE="driver")
    assert done.returncode == 2 and "No space left" in done.stderr, done.stderr
    assert not (small_disk / "out.json").exists()
    (small_disk / "filler").unlink()
    done = run("bench", KERNEL, "--set", "M=4,N=64", "--json", small_disk / "out.json", TILEWRIGHT_HIDE="driver")
    assert done.returncode == 3 and json.loads((small_disk / "out.json").read_text())["status"] == "no gpu"


def test_a_killed_compile_leaves_a_cache_that_works(tmp_path):
    if not has_nvrtc():
        pytest.skip("NVRTC is not on this machine")
    for delay in (0.02, 0.06, 0.12, 0.2):
        child = subprocess.Popen([PROGRAM, "emit", str(KERNEL), "--to", "report"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "TILEWRIGHT_CACHE": str(tmp_path)})
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
    done = run("emit", KERNEL, "--to", "report", "--json", TILEWRIGHT_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    again = run("emit", KERNEL, "--to", "report", "--json", TILEWRIGHT_CACHE=str(tmp_path))
    assert all(k["report"]["from_cache"] for k in json.loads(again.stdout)["kernels"])


def test_a_corrupt_entry_is_compiled_again_and_said(tmp_path):
    if not has_nvrtc():
        pytest.skip("NVRTC is not on this machine")
    run("emit", KERNEL, "--to", "report", TILEWRIGHT_CACHE=str(tmp_path))
    entries = [f for f in tmp_path.iterdir() if f.is_file() and f.stat().st_size > 1000]
    assert entries
    for f in entries:
        data = bytearray(f.read_bytes())
        data[len(data) // 2] ^= 0xff
        f.write_bytes(data)
    done = run("emit", KERNEL, "--to", "report", "--json", TILEWRIGHT_CACHE=str(tmp_path))
    reports = [k["report"] for k in json.loads(done.stdout)["kernels"]]
    assert done.returncode == 0 and not any(r["from_cache"] for r in reports)
    assert all("damaged" in r["cache_note"] for r in reports), reports


def children(process):
    lines = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(process)], capture_output=True, text=True).stdout.splitlines()
    return {int(line.split()[0]): line.split()[1:] for line in lines}


def test_a_worker_that_is_killed_costs_one_request():
    request = json.dumps({"file": str(SOURCE / "kernels" / "vector_add.py"), "sizes": {"N": 100}})
    child = subprocess.Popen([PROGRAM, "bench", "--requests", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TILEWRIGHT_HIDE": "driver"})
    child.stdin.write(request + "\n")
    child.stdin.flush()
    assert json.loads(child.stdout.readline())["status"] == "no gpu"
    wardens = children(child.pid)
    assert len(wardens) == 1
    worker = [pid for pid, words in children(*wardens).items() if "gpu-worker" in words]
    assert len(worker) == 1
    os.kill(worker[0], signal.SIGKILL)
    child.stdin.write(request + "\n" + request + "\n")
    child.stdin.flush()
    first, second = json.loads(child.stdout.readline()), json.loads(child.stdout.readline())
    assert first["status"] == "crashed" and "signal 9" in first["message"], first
    assert second["status"] == "no gpu" and second["worker"] == 2
    child.stdin.close()
    child.wait(timeout=30)
