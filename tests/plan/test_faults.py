"""Faults on the measured path: kill -9 in every GPU stage and resume, workers that crash, kernels that are wrong with fresh inputs, peers."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

TASK = '''name = "scale"
computes = "Y[m, n] = bf16(f32(X[m, n]) * 2.0)"
[sizes]
M = 512
N = 1024
[tensors]
X = { dtype = "bf16", dims = ["M", "N"] }
Y = { dtype = "bf16", dims = ["M", "N"] }
[[held_out]]
M = 96
'''
GEMM = '''name = "product"
computes = "C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))"
[sizes]
M = 64
N = 64
K = 64
[tensors]
A = { dtype = "bf16", dims = ["M", "K"] }
B = { dtype = "bf16", dims = ["N", "K"] }
C = { dtype = "bf16", dims = ["M", "N"] }
'''
STEPS = 5


class Bench:
    """A folder with a task, a journal, a memory and a fake GPU."""

    def __init__(self, folder, task=TASK):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "task.toml").write_text(task)
        self.files = ["--journal", folder / "journal.db", "--memory", folder / "memory.db"]

    def run(self, *words, cwd=None, **environment):
        """With FAKE_GPU_KILL the program is killed when the fake GPU says that its moment has come: all that it started is in its box."""
        count, now = self.folder / "count", self.folder / "count.now"
        count.unlink(missing_ok=True), now.unlink(missing_ok=True)
        with open(self.folder / "out", "w+") as out, open(self.folder / "err", "w+") as err:
            process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=out, stderr=err, cwd=cwd,
                                       env={**os.environ, "TILEWRIGHT_STATE": str(self.folder / "state"), "TILEWRIGHT_PROGRAM": str(SOURCE / "tests/plan/fake_gpu.py"), "FAKE_GPU_COUNT": str(count), "TILEWRIGHT_HIDE": "nvrtc",
                                            "TILEWRIGHT_PASS": "FAKE_GPU_COUNT,FAKE_GPU_KILL,FAKE_GPU_CRASH,FAKE_GPU_WRONG", "TILEWRIGHT_BOX_WRITE": str(self.folder), **environment})
            end = time.monotonic() + 900
            while process.poll() is None and time.monotonic() < end and not now.exists():
                time.sleep(0.01)
            if process.poll() is None:
                process.kill()
            status = process.wait()
            out.seek(0), err.seek(0)
            return subprocess.CompletedProcess(words, status, out.read(), err.read())

    def optimize(self, *words, **environment):
        return self.run("optimize", self.folder / "task.toml", "--steps", STEPS, "--plateau", 50, *self.files, *words, **environment)

    def resume(self, *words, **environment):
        return self.run("resume", "last", "--journal", self.folder / "journal.db", *words, **environment)

    def document(self):
        return json.loads(self.run("show", "last", "--json", "--journal", self.folder / "journal.db").stdout)

    def certificate(self):
        return json.loads(self.run("show", "last", "--evidence", "--journal", self.folder / "journal.db").stdout)


def path_of(document):
    return [(s["technique"], s["stage"], s["outcome"], s["source"], s["microseconds"], s["message"]) for s in document["steps"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("whole"))
    done = bench.optimize()
    assert done.returncode == 0, done.stdout + done.stderr
    return bench.document()


def test_the_fake_gpu_drives_the_measured_path(whole):
    assert whole["run"]["facts"]["device"] == "a fake GPU"
    assert len(whole["steps"]) == STEPS and all(s["microseconds"] for s in whole["steps"])
    assert {s["outcome"] for s in whole["steps"]} == {"accepted", "rejected"}


# Request 1 is the loop's probe, request 2 + i candidate i, STEPS + 2 the fresh inputs, STEPS + 3 the held-out shape.
@pytest.mark.parametrize("stage, request_number", [("compile", 1), ("run", 2), ("check", 4), ("measure", 3), ("run", STEPS + 2), ("check", STEPS + 3)])
def test_kill_9_in_every_gpu_stage_and_resume(tmp_path, whole, stage, request_number):
    bench = Bench(tmp_path)
    killed = bench.optimize(FAKE_GPU_KILL=f"{stage}:{request_number}")
    assert killed.returncode == -signal.SIGKILL
    if request_number == 1:  # nothing had begun
        assert bench.optimize().returncode == 0
    else:
        before = bench.document()
        assert len(before["steps"]) == min(request_number - 2, STEPS), "only the step in flight is lost"
        # The memory's place, the plateau and the rest come from the run.
        assert before["run"]["settings"]["memory"] == str(tmp_path / "memory.db") and before["run"]["settings"]["plateau"] == 50
        done = bench.resume()
        assert done.returncode == 0, done.stdout + done.stderr
    after = bench.document()
    assert path_of(after) == path_of(whole)
    assert after["run"]["reason"] == whole["run"]["reason"]
    assert after["run"]["facts"]["confirmation"]["status"] == "right"


def test_settings_of_a_run_are_its_own_when_it_goes_on(tmp_path):
    bench = Bench(tmp_path)
    assert bench.optimize("--repairs", 5, "--profile-after", "memory", "--stop-at", 0.5, "--without", "memory", FAKE_GPU_KILL="measure:4").returncode == -signal.SIGKILL
    settings = bench.document()["run"]["settings"]
    assert (settings["repairs"], settings["profile_after"], settings["stop_share"], settings["use_memory"]) == (5, "memory", 0.5, False)
    other = Bench(tmp_path / "other")
    assert other.optimize("--repairs", 5, "--profile-after", "memory", "--stop-at", 0.5, "--without", "memory").returncode == 0
    assert bench.resume().returncode == 0
    assert path_of(bench.document()) == path_of(other.document())


def test_a_plateau_counts_across_a_kill(tmp_path):
    whole, killed = Bench(tmp_path / "a"), Bench(tmp_path / "b")
    words = ["--plateau", 2]
    assert whole.run("optimize", whole.folder / "task.toml", "--steps", 30, *words, *whole.files).returncode == 0
    steps = len(whole.document()["steps"])
    assert "plateau" in whole.document()["run"]["reason"]
    # Killed in the last candidate: one without a gain was already counted.
    assert killed.run("optimize", killed.folder / "task.toml", "--steps", 30, *words, *killed.files, FAKE_GPU_KILL=f"measure:{steps + 1}").returncode == -signal.SIGKILL
    assert killed.resume().returncode == 0
    assert path_of(killed.document()) == path_of(whole.document())
    assert killed.document()["run"]["reason"] == whole.document()["run"]["reason"]


def test_a_worker_that_crashes_costs_one_candidate(tmp_path):
    bench = Bench(tmp_path)
    done = bench.optimize(FAKE_GPU_CRASH="4,5")
    assert done.returncode == 0, done.stdout + done.stderr
    steps = bench.document()["steps"]
    assert [s["failure_class"] for s in steps[2:4]] == ["launch", "launch"]
    assert "signal 11" in steps[2]["message"]
    assert len(steps) == STEPS and all(s["microseconds"] for s in steps[:2] + steps[4:])


def test_a_kernel_that_is_wrong_with_fresh_inputs_is_not_the_result(tmp_path, whole):
    bench = Bench(tmp_path)
    done = bench.optimize(FAKE_GPU_WRONG=str(STEPS + 2))
    assert done.returncode == 0, done.stdout + done.stderr
    facts = bench.document()["run"]["facts"]
    accepted = [s["number"] for s in whole["steps"] if s["outcome"] == "accepted"]
    assert [r["step"] for r in facts["confirmation"]["refused"]] == accepted[-1:]
    assert facts["confirmation"]["step"] == accepted[-2] and "NOT kept" in done.stdout


def test_the_certificate_says_what_was_measured_and_how(tmp_path):
    bench = Bench(tmp_path, GEMM)
    assert bench.run("optimize", bench.folder / "task.toml", "--steps", 2, *bench.files).returncode == 0
    c = bench.certificate()
    # cuBLASLt is the peer of a plain product; the fake takes 40 us.
    peer = c["peer"]
    assert peer["name"] == "cublaslt" and peer["status"] == "measured" and peer["microseconds"] == 40.0
    assert peer["ratio"] == pytest.approx(40.0 / peer["ours_microseconds"]) and peer["ratio_interval"][0] < peer["ratio"] < peer["ratio_interval"][1]
    timing = c["timing"]
    assert timing["interval"][0] < timing["microseconds"] < timing["interval"][1]
    assert timing["l2"] == "cold" and timing["clocks"]["after"]["sm_mhz"] == 1755 and timing["rounds"] == 12
    assert c["tests"]["fresh"]["seed"] != 1 and c["tests"]["fresh"]["status"] == "right" and c["tests"]["held_out"] == []
    assert c["machine"]["versions"]["gpu"] == "a fake GPU"
    assert sum(c["proof"]["by_kind"].values()) == c["proof"]["assertions"] and c["precision"]["policy"] == "strict"
    assert "not timed" not in c["missing"] and "no held-out shapes in the task" in c["missing"]
    journal = bench.document()["run"]["facts"]["peer"]
    assert journal == peer


def test_a_torch_peer_is_timed_by_the_script_of_bench(tmp_path):
    bench = Bench(tmp_path, TASK.replace('name =', 'peer = "torch:relu"\nname =', 1))
    # A stand-in for bench/torch_peer.py, which needs torch and a GPU: it answers with fixed times, and keeps what it was asked.
    (tmp_path / "bench/suites").mkdir(parents=True)
    (tmp_path / "bench/peers.json").write_text((SOURCE / "bench/peers.json").read_text())
    (tmp_path / "bench/torch_peer.py").write_text('''import json, sys
cases = json.load(open(sys.argv[1]))
json.dump(cases, open("asked.json", "w"))
with open(sys.argv[2], "a") as out:
    for n in range(int(sys.argv[3]), len(cases)):
        out.write(json.dumps({"began": n}) + "\\n")
        out.write(json.dumps({"number": n, "ours_us": 10.0, "peer_us": 12.5, "ratio": 1.25, "interval": [1.2, 1.3], "l2": "cold"}) + "\\n")
''')
    # Python of the working folder is not run because it lies there.
    elsewhere = bench.run("optimize", bench.folder / "task.toml", "--steps", 1, *bench.files, cwd=tmp_path)
    assert elsewhere.returncode == 0 and not (tmp_path / "asked.json").exists(), elsewhere.stdout
    done = bench.run("optimize", bench.folder / "task.toml", "--steps", 1, *bench.files, cwd=tmp_path, TILEWRIGHT_BENCH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    peer = bench.certificate()["peer"]
    assert (peer["name"], peer["microseconds"], peer["ratio"], peer["ratio_interval"]) == ("torch:relu", 12.5, 1.25, [1.2, 1.3])
    assert "1.250 times its speed [1.200, 1.300]" in done.stdout
    asked, = json.loads((tmp_path / "asked.json").read_text())
    assert asked["torch"] == "torch.relu(inputs[0])" and [t["dims"] for t in asked["tensors"]] == [[512, 1024], [512, 1024]]


def test_without_a_gpu_the_peer_and_the_confirmation_are_not_measured(tmp_path):
    bench = Bench(tmp_path, GEMM)
    done = bench.run("optimize", bench.folder / "task.toml", "--steps", 1, "--no-gpu", *bench.files)
    assert done.returncode == 0 and "Peer cublaslt: not measured (no GPU here)" in done.stdout
    c = bench.certificate()
    assert c["peer"]["status"] == "not measured" and "no peer was timed" in c["missing"] and "no fresh inputs" in c["missing"]
    assert c["timing"] is None


def test_a_peer_that_a_task_makes_up_is_refused_or_not_measured(tmp_path):
    bench = Bench(tmp_path, TASK.replace('name =', 'peer = "torch:__import__(\'os\')"\nname =', 1))
    assert bench.run("optimize", bench.folder / "task.toml", "--steps", 1, "--no-gpu", *bench.files).returncode == 2
    (bench.folder / "task.toml").write_text(TASK.replace('name =', 'peer = "torch:no_such"\nname =', 1))
    done = bench.run("optimize", bench.folder / "task.toml", "--steps", 1, *bench.files)
    assert done.returncode == 0 and "bench/peers.json has no 'no_such'" in done.stdout


def test_a_damaged_memory_is_refused_and_kept(tmp_path):
    bench = Bench(tmp_path)
    (tmp_path / "memory.db").write_bytes(b"rubbish" * 1000)
    done = bench.optimize("--no-gpu")
    assert done.returncode == 2 and "damaged" in done.stderr and (tmp_path / "memory.db").read_bytes() == b"rubbish" * 1000
    # Nor does a run begin that could not be recorded.
    assert "no runs yet" in bench.run("runs", "--journal", tmp_path / "journal.db").stdout


def test_a_journal_that_is_damaged_in_the_middle_of_a_run(tmp_path):
    bench = Bench(tmp_path)
    assert bench.optimize(FAKE_GPU_KILL="measure:4").returncode == -signal.SIGKILL
    journal = tmp_path / "journal.db"
    subprocess.run([sys.executable, "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA wal_checkpoint(TRUNCATE)')", str(journal)], check=True)
    whole = journal.read_bytes()
    page = 4096
    hurt = 0
    for at in range(page, len(whole), page * 7):
        journal.write_bytes(whole[:at] + b"\xa5" * page + whole[at + page:])
        for leftover in ("journal.db-wal", "journal.db-shm"):
            (tmp_path / leftover).unlink(missing_ok=True)
        done = bench.resume()
        assert done.returncode in (0, 2), (at, done.returncode, done.stderr)  # in words, never a crash
        hurt += done.returncode == 2
    assert hurt > 0


# ------------------------------------------------------------------------------------------------------------------------- profiling

def test_counters_are_shown_after_the_stage_that_the_class_prescribes(tmp_path):
    """A program as proposer, a fake GPU and an `ncu` that prints a recorded file: what the program is shown, and when."""
    bench = Bench(tmp_path, TASK.replace("f32(X[m, n]) * 2.0", "softmax(n, f32(X[m, n]))"))  # a reduction: after structure
    kernels = Bench(tmp_path / "builtin", (tmp_path / "task.toml").read_text())
    assert kernels.optimize("--no-gpu").returncode == 0
    sources = [s["source"] for s in kernels.document()["steps"] if s["outcome"] == "accepted"]
    (tmp_path / "sources.json").write_text(json.dumps(sources))
    (tmp_path / "propose.py").write_text(f"""import json, pathlib, sys
request = json.load(sys.stdin)
folder = pathlib.Path({str(tmp_path)!r})
asked = folder / "asked.jsonl"
n = len(asked.read_text().splitlines()) if asked.exists() else 0
with asked.open("a") as out:
    out.write(json.dumps({{"stage": request["stage"], "metrics": request["metrics"]}}) + "\\n")
sources = json.loads((folder / "sources.json").read_text())
print(json.dumps({{"source": sources[n % len(sources)] + f"# {{n}}\\n", "note": "one of them"}}))
""")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ncu").write_text(f"""#!{sys.executable}
import pathlib, sys
words = sys.argv[1:]
pathlib.Path(words[words.index("--log-file") + 1]).write_text(pathlib.Path({str(SOURCE / 'tests/plan/data/ncu.csv')!r}).read_text())
pathlib.Path({str(tmp_path / 'asked_ncu')!r}).write_text(words[words.index("--metrics") + 1])
""")
    (tools / "ncu").chmod(0o755)
    done = bench.run("optimize", bench.folder / "task.toml", "--steps", 24, "--plateau", 50, "--repairs", 0, *bench.files, "--proposer", f"command:{sys.executable} {tmp_path / 'propose.py'}", PATH=f"{tools}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stdout + done.stderr
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    early = [a for a in asked if a["stage"] in ("first", "structure")]
    late = [a for a in asked if a["stage"] not in ("first", "structure")]
    assert early and late, [a["stage"] for a in asked]
    assert all(a["metrics"] == [] for a in early)
    names = {m["name"]: m for m in late[0]["metrics"]}
    assert names["gpu__time_duration.sum"]["value"] == pytest.approx(86.208) and names["gpu__time_duration.sum"]["unit"] == "us"
    assert "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active" not in (tmp_path / "asked_ncu").read_text()
