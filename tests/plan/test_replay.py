"""Replays: a run that is judged by a table of measured candidates walks inside the table and says what it is."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
TABLE = SOURCE / "bench/results/agent/measured.json"
needs_program = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def run(folder, *words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=900, env={**os.environ, "TILEWRIGHT_STATE": str(folder / "state")})


def replay(folder, task, table=TABLE, *words):
    folder.mkdir(parents=True, exist_ok=True)
    done = run(folder, "optimize", SOURCE / f"tasks/{task}.toml", "--replay", table, "--steps", 12, "--plateau", 40, "--stop-at", 9, "--journal", folder / "journal.db", "--memory", folder / "memory.db", *words)
    shown = run(folder, "show", "last", "--json", "--journal", folder / "journal.db")
    return done, json.loads(shown.stdout)["steps"] if shown.returncode == 0 and shown.stdout.startswith("{") else []


def sketch(step):
    line = re.search(r"^# sketch: .*$", step["source"], re.M).group(0)
    return re.sub(r" expect=\S+", "", line).strip()


@needs_program
@pytest.mark.parametrize("task", ["softmax", "gemm"])
def test_a_replay_walks_inside_the_table(tmp_path, task):
    known = json.loads(TABLE.read_text())["tasks"][task]
    done, steps = replay(tmp_path / "a", task)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(steps) > 3
    for step in steps:
        entry = known[sketch(step)]
        assert step["microseconds"] == pytest.approx(entry["us"]) if "us" in entry else step["outcome"] == "failed"
        assert [g["gate"] for g in step["gates"]] == ["recorded"]
    assert len({sketch(s) for s in steps}) == len(steps)
    assert "a table of earlier measurements" in done.stdout
    again = replay(tmp_path / "b", task)[1]
    assert [sketch(s) for s in again] == [sketch(s) for s in steps]
    refused = run(tmp_path / "a", "resume", "last", "--journal", tmp_path / "a/journal.db")
    assert refused.returncode == 2 and "replay" in refused.stderr


@needs_program
def test_a_table_that_is_none_is_refused_in_words(tmp_path):
    bad = tmp_path / "bad.json"
    for text, said in (("rubbish", "no table of measured candidates"), ("[]", "no table of measured candidates"), ('{"kind": 3, "tasks": {}}', "no table of measured candidates"),
                       ('{"kind": "tilewright measured candidates", "tasks": {}}', "nothing about the task softmax")):
        bad.write_text(text)
        done, steps = replay(tmp_path, "softmax", bad)
        assert done.returncode == 2 and said in done.stderr and not steps, (text, done.stderr)
    # Entries that are not what they should be cost themselves, never the run.
    bad.write_text('{"kind": "tilewright measured candidates", "tasks": {"softmax": {"# sketch: tile": 3, "x": {"us": "fast"}, "y": {"failure": 7, "message": []}}}}')
    assert replay(tmp_path, "softmax", bad)[0].returncode in (1, 2)
    assert replay(tmp_path, "softmax", tmp_path / "missing.json")[0].returncode == 2


def test_the_tables_of_the_documentation_are_the_committed_ones():
    done = subprocess.run([sys.executable, str(SOURCE / "scripts/learning_table.py"), "replay-table", str(SOURCE / "bench/results/agent/replay.json")], capture_output=True, text=True, check=True)
    page = (SOURCE / "docs/agent.md").read_text()
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 8
    for row in rows:
        assert row in page, row
