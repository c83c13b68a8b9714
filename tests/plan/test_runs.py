"""Optimisation runs end to end: scripted replies, kill -9 and resume, the page, the certificate."""
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

KEY = "sk-very-secret-0123456789"
TASK = '''name = "scale"
computes = "Y[m, n] = bf16(f32(X[m, n]) * 2.0)"
target = "sm_90a"
[sizes]
M = 512
N = 1024
[tensors]
X = { dtype = "bf16", dims = ["M", "N"] }
Y = { dtype = "bf16", dims = ["M", "N"] }
'''


def tilewright(tmp_path, *words, **environment):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "TILEWRIGHT_STATE": str(tmp_path / "state"), **environment})


@pytest.fixture
def task(tmp_path):
    file = tmp_path / "scale.toml"
    file.write_text(TASK)
    return file


def built_in_kernels(tmp_path, task, steps=3):
    """Sources of accepted steps of a run with the built-in proposer: what a model might have written."""
    done = tilewright(tmp_path, "optimize", task, "--steps", steps, "--no-gpu", "--journal", tmp_path / "other.db")
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads(tilewright(tmp_path, "show", "last", "--json", "--journal", tmp_path / "other.db").stdout)
    return [step["source"] for step in run["steps"] if step["outcome"] == "accepted"]


class Provider:
    """model_server.py with a list of replies."""

    def __init__(self, folder, replies):
        (folder / "script.json").write_text(json.dumps(replies))
        self.log = folder / "provider.log"
        self.process = subprocess.Popen([sys.executable, SOURCE / "tests/plan/model_server.py", self.log, folder / "script.json"], stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}/script"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def questions(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_whole_optimisation_from_scripted_replies(tmp_path, task, wire):
    first, *better = built_in_kernels(tmp_path, task)
    broken = first.replace("tw.store(", "tw.stoer(", 1)
    replies = ["I cannot do that.", "```python\n" + first[:40], f"```python\n{first}```", f"Note: with a slip\n```python\n{broken}```", f"Note: repaired\n```python\n{better[0] if better else first}```", "no more"]
    with Provider(tmp_path, replies) as provider:
        prefix = wire.upper()
        done = tilewright(tmp_path, "optimize", task, "--proposer", f"{wire}:model-1", "--steps", 6, "--no-gpu", "-o", tmp_path / "best.py",
                          **{f"{prefix}_API_KEY": KEY, f"{prefix}_BASE_URL": provider.url, "TILEWRIGHT_DOLLARS_PER_MILLION": "2,10", "TILEWRIGHT_FIRST_WAIT": "0.01"})
        assert done.returncode == 0, done.stdout + done.stderr
        questions = provider.questions()
    run = json.loads(tilewright(tmp_path, "show", "last", "--json").stdout)
    steps = run["steps"]
    # The two useless replies cost an attempt each, the third is the first kernel.
    assert [step["outcome"] for step in steps[:3]] == ["failed", "failed", "accepted"], done.stdout
    assert steps[0]["failure_class"] == steps[1]["failure_class"] == "proposal"
    assert steps[2]["verdict"] == "proved"
    slip = next(step for step in steps if "tw.stoer" in step.get("source", ""))
    assert slip["outcome"] == "failed" and slip["failure_class"] in ("type", "syntax")
    assert run["run"]["proposer"] == f"{wire}:model-1"
    assert sum(exchange["cost_usd"] for step in steps for exchange in step["exchanges"]) == pytest.approx(0.004 * len(questions))
    # The repair was shown what was wrong with the attempt.
    repair = json.dumps(questions[4]["body"])
    assert "stoer" in repair and "refused" in repair
    assert "proved" in tilewright(tmp_path, "check", tmp_path / "best.py").stdout
    # The key is in no file and no output.
    assert KEY not in done.stdout + done.stderr
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert KEY.encode() not in file.read_bytes(), file


def test_a_provider_that_cannot_be_reached_ends_the_run_with_what_it_has(tmp_path, task):
    done = tilewright(tmp_path, "optimize", task, "--proposer", "openai:m", "--no-gpu", OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://127.0.0.1:9", TILEWRIGHT_FIRST_WAIT="0.01")
    assert done.returncode == 1
    assert "does not answer" in done.stdout
    missing = tilewright(tmp_path, "optimize", task, "--proposer", "anthropic", "--no-gpu", ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="")
    assert missing.returncode == 2 and "ANTHROPIC_API_KEY" in missing.stderr


def test_any_program_can_propose(tmp_path, task):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(built_in_kernels(tmp_path, task, 1)[0])
    done = tilewright(tmp_path, "optimize", task, "--proposer", f"command:cat {kernel}", "--steps", 2, "--no-gpu")
    assert done.returncode == 0, done.stdout + done.stderr


def listed_runs(tmp_path, journal):
    if not journal.exists():
        return []
    return json.loads(tilewright(tmp_path, "runs", "--json", "--journal", journal).stdout or "{}").get("runs", [])


def test_kill_9_at_any_moment_and_resume(tmp_path, task):
    """The run that is killed again and again ends as the one that was left alone."""
    began = time.monotonic()
    whole = tilewright(tmp_path, "optimize", task, "--steps", 6, "--no-gpu", "--journal", tmp_path / "whole.db", "--memory", tmp_path / "m1.db")
    takes = time.monotonic() - began   # so that a fast machine is killed in the middle too
    assert whole.returncode == 0, whole.stdout + whole.stderr
    expected = json.loads(tilewright(tmp_path, "show", "last", "--json", "--journal", tmp_path / "whole.db").stdout)["steps"]

    seed = 7
    chance = random.Random(seed)
    journal, memory = tmp_path / "killed.db", tmp_path / "m2.db"
    words = ["optimize", task, "--steps", 6, "--no-gpu", "--journal", journal, "--memory", memory]
    kept, kills = 0, 0
    for _ in range(12):
        child = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        told = 0
        try:
            child.wait(timeout=takes * chance.uniform(0.05, 0.6))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            kills += 1
        out, err = child.communicate()
        told = sum(1 for line in out.splitlines() if line[:3].strip().isdigit())
        runs = listed_runs(tmp_path, journal)
        for _ in range(50):  # what the killed program had started ends a moment after it, and holds the journal until then
            if child.returncode == 0 or not runs or runs[0]["state"] != "running":
                break
            time.sleep(0.1)
            runs = listed_runs(tmp_path, journal)
        if runs:
            assert len(runs) == 1
            assert runs[0]["steps"] >= kept + told, f"a step that was shown is not in the journal (seed {seed})"
            kept = runs[0]["steps"]
            words = ["resume", runs[0]["id"], "--journal", journal, "--memory", memory]
            if child.returncode == 0:
                break
            assert runs[0]["state"] in ("interrupted", "finished"), runs
    else:
        done = tilewright(tmp_path, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert kills > 0
    steps = json.loads(tilewright(tmp_path, "show", "last", "--json", "--journal", journal).stdout)["steps"]
    assert [step["number"] for step in steps] == list(range(len(steps)))
    assert [step["source"] for step in steps] == [step["source"] for step in expected]


def test_the_page_and_the_certificate(tmp_path, task):
    done = tilewright(tmp_path, "optimize", task, "--steps", 3, "--no-gpu", "--html", tmp_path / "run.html")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!doctype html>") and "proved" in page and "Nothing was measured" in page
    assert "<script" not in page and "http://" not in page and "https://" not in page

    evidence = tilewright(tmp_path, "show", "last", "--evidence")
    certificate = json.loads(evidence.stdout)
    assert certificate["proof"]["verdict"] == "proved" and certificate["proof"]["proved"] == certificate["proof"]["assertions"] > 0
    assert "not tested on a GPU" in certificate["missing"] and "not timed" in certificate["missing"]
    file = tmp_path / "certificate.json"
    file.write_text(evidence.stdout)
    replay = tilewright(tmp_path, "replay", file, TILEWRIGHT_HIDE="driver")
    assert replay.returncode == 0 and "holds" in replay.stdout, replay.stdout + replay.stderr
    certificate["kernel"]["source"] += "# changed\n"
    file.write_text(json.dumps(certificate))
    assert tilewright(tmp_path, "replay", file).returncode == 2
    file.write_text("[]")
    assert tilewright(tmp_path, "replay", file).returncode == 2

    exported = tmp_path / "run.json"
    assert tilewright(tmp_path, "show", "last", "--export", exported).returncode == 0
    again = tilewright(tmp_path, "show", exported)
    assert again.returncode == 0 and again.stdout == tilewright(tmp_path, "show", "last").stdout
    assert tilewright(tmp_path, "show", exported, "--source").stdout == tilewright(tmp_path, "show", "last", "--source").stdout


def test_a_damaged_or_foreign_journal_is_refused_and_kept(tmp_path, task):
    file = tmp_path / "journal.db"
    file.write_bytes(b"not a database at all, but long enough to be looked at as one" * 40)
    before = file.read_bytes()
    for words in (["optimize", task, "--no-gpu", "--steps", 1, "--journal", file], ["runs", "--journal", file], ["show", "last", "--journal", file], ["resume", "last", "--journal", file]):
        done = tilewright(tmp_path, *words)
        assert done.returncode == 2 and "damaged" in done.stderr and "fix:" in done.stderr, (words, done.stderr)
    assert file.read_bytes() == before
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE wine(name)")
    assert "another program" in tilewright(tmp_path, "optimize", task, "--no-gpu", "--journal", file).stderr


def test_a_full_disk_ends_the_run_in_words_and_keeps_what_was_written(tmp_path, task):
    journal = tmp_path / "journal.db"
    # A limit on the size of files refuses writes as a full disk does.
    words = [PROGRAM, "optimize", task, "--steps", "6", "--no-gpu", "--journal", journal, "--memory", tmp_path / "m.db"]
    done = subprocess.run(["sh", "-c", 'trap "" XFSZ; ulimit -f 160; exec "$@"', "sh", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    if done.returncode == 2:
        assert "disk" in done.stderr
    runs = json.loads(tilewright(tmp_path, "runs", "--json", "--journal", journal).stdout)["runs"]
    shown = sum(1 for line in done.stdout.splitlines() if line[:3].strip().isdigit())
    assert runs[0]["steps"] == shown
    after = tilewright(tmp_path, "resume", runs[0]["id"], "--journal", journal, "--memory", tmp_path / "m.db")
    assert after.returncode == 0, after.stdout + after.stderr


def test_unknown_names_are_answered_in_words(tmp_path, task):
    assert "no runs yet" in tilewright(tmp_path, "runs").stdout
    assert tilewright(tmp_path, "show", "last").returncode == 2
    tilewright(tmp_path, "optimize", task, "--steps", 1, "--no-gpu")
    assert "there is no run" in tilewright(tmp_path, "show", "nothing").stderr
    assert tilewright(tmp_path, "show", "last", 99).returncode == 2
    assert tilewright(tmp_path, "resume", "nothing").returncode == 2
