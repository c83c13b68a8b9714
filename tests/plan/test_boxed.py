"""Budgets hold, hostile input ends, and nothing of a run gets out: providers, programs, files and journals that mean ill."""
import json
import os
import pathlib
import sqlite3
import stat
import subprocess
import sys
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

TASK = '''name = "dbl"
computes = "Y[n] = X[n] * 2"
[sizes]
N = 4096
[tensors]
X = { dtype = "f32", dims = ["N"] }
Y = { dtype = "f32", dims = ["N"] }
'''
KERNEL = '''import tilewright as tw
from tilewright import f32
N = tw.sizes("N")

@tw.kernel(target="sm_90a", computes="Y[n] = X[n] * 2")
def dbl(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0) * 2.0)
'''


@pytest.fixture(scope="module")
def port():
    server = subprocess.Popen([sys.executable, SOURCE / "tests/plan/hostile_server.py"], stdout=subprocess.PIPE, text=True)
    yield int(server.stdout.readline())
    server.kill()


@pytest.fixture
def task(tmp_path):
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path / "task.toml"


def run(folder, *words, timeout=300, **more):
    environment = {**os.environ, "TILEWRIGHT_STATE": str(folder / "state"), "TILEWRIGHT_HIDE": "nvrtc", **more}
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=timeout, cwd=folder, env=environment, errors="replace")


def ask(folder, task, port, mode, *words, base=None, **more):
    return run(folder, "optimize", task, "--no-gpu", "--proposer", "openai:m", *words,
               OPENAI_BASE_URL=base or f"http://127.0.0.1:{port}/{mode}/v1", OPENAI_API_KEY="sk-x12345", TILEWRIGHT_FIRST_WAIT="0.05", **more)


def tokens_of(folder):
    return json.loads(run(folder, "runs", "--json").stdout)["runs"][0]["tokens"]


# ---- budgets ----

@pytest.mark.parametrize("mode", ["never", "silent", "retry", "slowtool"])
def test_seconds_end_model_calls_waits_and_tool_calls(tmp_path, task, port, mode):
    begin = time.monotonic()
    done = ask(tmp_path, task, port, mode, "--steps", 3, "--seconds", 3)
    # Three seconds, and what a loaded machine needs to start processes: nowhere near the minutes that a call, a wait or six rounds of tools may take by themselves.
    assert time.monotonic() - begin < 45, done.stdout
    assert done.returncode == 1 and "stopped:" in done.stdout, done.stdout + done.stderr


def test_seconds_end_a_program_that_hangs(tmp_path, task):
    begin = time.monotonic()
    done = run(tmp_path, "optimize", task, "--no-gpu", "--seconds", 2, "--proposer", "command:sleep 600")
    assert time.monotonic() - begin < 45 and done.returncode == 1, done.stdout


def test_usage_that_overflows_spends_the_budget(tmp_path, task, port):
    done = ask(tmp_path, task, port, "hugeusage", "--steps", 9, "--tokens", 100000)
    assert done.returncode == 1 and "budget: 100000 tokens" in done.stdout, done.stdout + done.stderr
    assert tokens_of(tmp_path) == 2**63 - 1
    assert run(tmp_path, "runs").returncode == 0 and run(tmp_path, "show", "last").returncode == 0


def test_replies_that_break_off_are_paid(tmp_path, task, port):
    done = ask(tmp_path, task, port, "broken", "--steps", 9, "--tokens", 25000)
    paid = tokens_of(tmp_path)
    assert 20000 <= paid <= 35000, (paid, done.stdout)  # 10,000 a reply: two or three of them


def test_replies_without_usage_are_estimated(tmp_path, task, port):
    done = ask(tmp_path, task, port, "nousage", "--steps", 9, "--tokens", 30000)
    paid = tokens_of(tmp_path)
    assert paid > 2000, "8,000 characters of each reply alone are 2,000 tokens"
    assert paid < 60000 and done.returncode == 1, done.stdout


@pytest.mark.parametrize("words", [["--seconds", "nan"], ["--seconds", "-1"], ["--seconds", "inf"], ["--seconds", "0"], ["--tokens", "-5"], ["--tokens", "0"], ["--dollars", "nan"], ["--dollars", "-0.1"],
                                   ["--dollars", "1e400"], ["--steps", "0"], ["--stop-at", "nan"]])
def test_senseless_budgets_are_refused(tmp_path, task, words):
    done = run(tmp_path, "optimize", task, "--no-gpu", *words)
    assert done.returncode == 2 and done.stderr, done.stdout + done.stderr


def test_dollars_need_a_price(tmp_path, task, port):
    done = ask(tmp_path, task, port, "nousage", "--dollars", 1)
    assert done.returncode == 2 and "TILEWRIGHT_DOLLARS_PER_MILLION" in done.stderr
    for price in ("nan", "-3", "cheap", "3,inf"):
        done = ask(tmp_path, task, port, "nousage", "--dollars", 1, TILEWRIGHT_DOLLARS_PER_MILLION=price)
        assert done.returncode == 2 and "price" in done.stderr, price
    done = ask(tmp_path, task, port, "hugeusage", "--dollars", 1, "--steps", 9, TILEWRIGHT_DOLLARS_PER_MILLION="3,15")
    assert "budget: 1 dollars" in done.stdout, done.stdout + done.stderr


def test_a_program_that_hides_its_price_ends_a_run_with_a_budget_of_dollars(tmp_path, task):
    done = run(tmp_path, "optimize", task, "--no-gpu", "--dollars", 1, "--steps", 3, "--proposer", f"command:cat {tmp_path}/kernel.py")
    assert "does not say what it cost" in done.stdout, done.stdout + done.stderr


# ---- crashes ----

@pytest.mark.parametrize("mode", ["deepargs", "deepevent"])
def test_nested_streams_do_not_crash(tmp_path, task, port, mode):
    done = ask(tmp_path, task, port, mode, "--steps", 2, "--seconds", 30)
    assert done.returncode == 1, (done.returncode, done.stderr)


def test_nested_files_are_refused(tmp_path):
    deep = 100_000
    (tmp_path / "run.json").write_text('{"schema":1,"kind":"tilewright run","run":{"id":"x","settings":' + "[" * deep + "]" * deep + '},"steps":[]}')
    (tmp_path / "certificate.json").write_text('{"schema":1,"kind":"tilewright evidence","kernel":' + "[" * deep + "]" * deep + "}")
    (tmp_path / "dots.toml").write_text(".".join(["a"] * 200_000) + " = 1\n")
    (tmp_path / "brackets.toml").write_text("a = " + "[ " * 200_000 + "\n")
    (tmp_path / "tables.toml").write_text("a = " + "{b = " * 100_000 + "\n")
    for words in (["show", "run.json"], ["replay", "certificate.json"], ["optimize", "dots.toml"], ["optimize", "brackets.toml"], ["optimize", "tables.toml"], ["optimize", TASK and "absent.toml"]):
        done = run(tmp_path, *words)
        assert done.returncode == 2 and done.stderr, (words, done.returncode, done.stderr[:300])


def test_pipes_and_devices_are_not_read(tmp_path, task):
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.json")
    for words in (["check", "pipe"], ["ir", "pipe"], ["emit", "/dev/zero"], ["optimize", "pipe"], ["optimize", "/dev/zero"], ["show", "pipe.json"], ["replay", "pipe"], ["submit", task, "pipe"], ["runs", "--journal", "pipe"],
                  ["optimize", task, "--replay", "pipe"], ["bench", "--requests", "pipe"], ["gpu-worker", "--requests", "/dev/zero"]):
        done = run(tmp_path, *words, timeout=60)
        assert done.returncode == 2 and done.stderr, (words, done.returncode, done.stderr)


def test_what_is_no_database_is_neither_waited_for_nor_changed(tmp_path, task):
    """/proc/kmsg calls itself a plain file, and a read of it waits for the kernel to say something."""
    for words in (["runs", "--journal", "/proc/kmsg"], ["resume", "last", "--journal", "/proc/kmsg"], ["merge", "/proc/kmsg", "-o", "out.json"], ["optimize", task, "--no-gpu", "--steps", 1, "--memory", "/proc/kmsg"]):
        done = run(tmp_path, *words, timeout=60)
        assert done.returncode == 2 and done.stderr, (words, done.returncode, done.stderr)
    other = tmp_path / "kernel.py"
    other.chmod(0o644)
    done = run(tmp_path, "optimize", task, "--no-gpu", "--steps", 1, "--journal", other)
    assert done.returncode == 2 and other.read_text() == KERNEL and stat.S_IMODE(other.stat().st_mode) == 0o644, done.stderr


@pytest.fixture
def journal(tmp_path, task):
    done = run(tmp_path, "optimize", task, "--no-gpu", "--steps", 2, "--journal", tmp_path / "journal.db", "--memory", tmp_path / "memory.db")
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "journal.db"


def change(journal, *statements):
    database = sqlite3.connect(journal)
    for statement in statements:
        database.execute(*statement) if isinstance(statement, tuple) else database.execute(statement)
    database.commit()
    database.close()


ODD = ["5", '"text"', "[]", "[[[]]]", '{"stage": 5}', "null", "{", '{"resources": 7, "gpu": 3, "used": 4, "proof": []}', "[" * 100_000 + "]" * 100_000,
       '{"peer": 4, "confirmation": {"fresh": 3}, "roofline": {"microseconds": "x"}, "device": 7}', '{"candidates": 1e300, "tokens": 1e300, "seed": "x", "memory": 5, "seconds": -1}',
       '{"stage": "memory", "current_step": 1e300, "best_step": -7, "current_us": 0, "best_us": 0, "first_us": 0, "since_gain": 0, "provisional": 0, "seconds": 0}']


@pytest.mark.parametrize("column", ["runs.settings", "runs.facts", "steps.gates", "steps.evidence", "steps.state"])
def test_journals_of_another_type_are_shown_or_refused(journal, column):
    table, name = column.split(".")
    for odd in ODD:
        change(journal, (f"UPDATE {table} SET {name} = ?", (odd,)))
        for words in (["runs"], ["show", "last"], ["show", "last", "1"], ["show", "last", "--json"], ["show", "last", "--evidence"], ["show", "last", "--html", "page.html"], ["resume", "last", "--steps", 2]):
            done = run(journal.parent, *words, "--journal", journal)
            assert done.returncode in (0, 1, 2), (odd[:60], words, done.returncode, done.stderr)


@pytest.mark.parametrize("what", ["CREATE VIEW more AS SELECT 1", "CREATE TRIGGER more AFTER INSERT ON steps BEGIN DELETE FROM runs; END",
                                  "ALTER TABLE runs RENAME TO old; CREATE VIEW runs AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT old.* FROM old, c"])
def test_journals_with_views_or_triggers_are_refused(journal, what):
    database = sqlite3.connect(journal)
    database.executescript(what)
    database.close()
    for words in (("runs", "--journal", journal), ("merge", journal, "--journal", journal.with_name("merged.db"))):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "views or triggers" in done.stderr, done.stderr


def test_counts_and_times_out_of_range_do_not_make_a_journal_unusable(journal):
    change(journal, ("INSERT OR REPLACE INTO exchanges SELECT run, number, 0, 'p', 'm', 'v', '', '', ?, ?, 1e308, 0, '' FROM steps", (2**63 - 1, 2**63 - 1)),
           "UPDATE runs SET started_ms = 9223372036854775807, ended_ms = -5")
    for words in (["runs"], ["runs", "--json"], ["show", "last"], ["show", "last", "--html", "page.html"]):
        done = run(journal.parent, *words, "--journal", journal)
        assert done.returncode == 0, (words, done.stderr)
    change(journal, "UPDATE steps SET number = 4294967296 WHERE number = 1")
    assert run(journal.parent, "show", "last", "--journal", journal).returncode == 2


# ---- secrets and escape ----

def test_a_program_sees_no_keys_and_leaves_nothing(tmp_path, task):
    script = tmp_path / "proposer.sh"
    script.write_text(f'''#!/bin/sh
env | grep -c API_KEY >&2
echo $$ > $TMPDIR/own_scratch || exit 5
(echo keys > {tmp_path}/outside) 2>/dev/null
setsid sh -c 'sleep 4; echo survived > /dev/shm/tilewright-survived' > /dev/null 2>&1 < /dev/null &
cat > /dev/null
printf '{{"note": "%s", "source": %s}}' "$(env | grep -c API_KEY) keys" "$(python3 -c 'import json; print(json.dumps(open("{tmp_path}/kernel.py").read()))')"
''')
    script.chmod(0o755)
    mark = pathlib.Path("/dev/shm/tilewright-survived")
    mark.unlink(missing_ok=True)
    done = run(tmp_path, "optimize", task, "--no-gpu", "--steps", 1, "--proposer", f"command:{script}", OPENAI_API_KEY="sk-1", ANTHROPIC_API_KEY="sk-2")
    assert done.returncode == 0, done.stdout + done.stderr
    text = run(tmp_path, "show", "last", "--json").stdout
    assert "0 keys" in text and "2 keys" not in text
    doctor = run(tmp_path, "doctor").stdout
    if "present  box: writes" in doctor:
        assert not (tmp_path / "outside").exists()
    time.sleep(5)
    assert not mark.exists(), "what it started with setsid outlived the run"


def test_credentials_of_an_address_are_nowhere(tmp_path, task):
    done = ask(tmp_path, task, 0, "", "--steps", 2, "--seconds", 20, base="http://user:hunter2@127.0.0.1:9/v1?key=hunter3")
    kept = done.stdout + done.stderr + run(tmp_path, "show", "last", "--json").stdout
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file():
            kept += path.read_bytes().decode(errors="replace")
    assert "hunter2" not in kept and "hunter3" not in kept and "127.0.0.1:9" in kept


def test_journals_are_private(tmp_path, task, journal):
    for path in [journal, tmp_path / "memory.db"]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    journal.chmod(0o644)
    run(tmp_path, "optimize", task, "--no-gpu", "--steps", 1, "--journal", journal, "--memory", tmp_path / "memory.db")
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600, "an older one is closed too"


def test_a_foreign_journal_starts_no_program_and_opens_no_file(journal):
    folder = journal.parent
    change(journal, ("UPDATE runs SET proposer = ?", (f"command:touch {folder}/executed",)))
    done = run(folder, "resume", "last", "--journal", journal, "--steps", 4)
    assert done.returncode == 2 and "--proposer" in done.stderr and not (folder / "executed").exists()
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    change(journal, "UPDATE runs SET proposer = 'builtin'", ("UPDATE runs SET settings = json_set(settings, '$.memory', ?)", (str(elsewhere / "memory.db"),)))
    done = run(folder, "resume", "last", "--journal", journal, "--steps", 3)
    assert done.returncode == 0 and not list(elsewhere.iterdir()), done.stderr


def test_a_run_id_names_no_file_elsewhere(journal):
    folder = journal.parent
    bad = "../../../escaped"
    change(journal, "PRAGMA foreign_keys = OFF", ("UPDATE runs SET id = ?", (bad,)), ("UPDATE steps SET run = ?", (bad,)), ("UPDATE exchanges SET run = ?", (bad,)))
    before = set(p for p in folder.rglob("*"))
    done = run(folder, "resume", bad, "--journal", journal, "--steps", 4)
    assert done.returncode == 2 and "no id" in done.stderr, done.stderr
    assert not any("escaped" in str(p) for p in set(folder.rglob("*")) - before)
    assert run(folder, "runs", "--journal", journal).returncode == 0


def test_show_and_runs_agree_on_an_interrupted_run(journal):
    change(journal, "UPDATE runs SET state = 'running', reason = '', ended_ms = 0")
    runs = json.loads(run(journal.parent, "runs", "--json", "--journal", journal).stdout)["runs"]
    shown = json.loads(run(journal.parent, "show", "last", "--json", "--journal", journal).stdout)
    assert runs[0]["state"] == shown["run"]["state"] == "interrupted"
    assert "interrupted" in run(journal.parent, "show", "last", "--journal", journal).stdout


def test_left_folders_of_killed_processes_are_removed(tmp_path):
    left = tmp_path / "tilewright-call-999999999-abcdef"
    left.mkdir()
    (left / "kernel.py").write_text("x")
    os.utime(left, (1, 1))
    young = tmp_path / "tilewright-call-999999998-abcdef"
    young.mkdir()
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "explain", "arguments": {"code": "TW2001"}}})
    environment = {**os.environ, "TMPDIR": str(tmp_path), "TILEWRIGHT_STATE": str(tmp_path / "state")}
    server = subprocess.Popen([PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    server.stdin.write(message + "\n")
    server.stdin.flush()
    assert json.loads(server.stdout.readline())["id"] == 1
    server.stdin.close()
    server.wait(timeout=30)
    assert not left.exists() and young.exists()


def test_a_resumed_run_takes_new_budgets(journal):
    folder = journal.parent
    done = run(folder, "resume", "last", "--journal", journal, "--steps", 50, "--seconds", 0.001)
    assert "seconds" in done.stdout + done.stderr, "what the run spent before counts"
    for words in (["--seconds", 0], ["--tokens", -1], ["--dollars", "nan"]):
        assert run(folder, "resume", "last", "--journal", journal, *words).returncode == 2, words
