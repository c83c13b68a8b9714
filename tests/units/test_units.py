"""Units of work: the local engine, Slurm by its commands, Ray where it is installed, faults, foreign folders, merging."""
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

# Bounded by runs, not by seconds: a unit's result does not depend on the machine.
CROSS = ["crosscheck", "--seed", "5", "--family", "elementwise", "--trials", "60", "--trials-other", "60", "--trial-count", "2"]


def tilewright(tmp_path, *words, timeout=120, **variables):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=timeout, cwd=tmp_path,
                          env={**os.environ, "TILEWRIGHT_STATE": str(tmp_path / "state"), "TILEWRIGHT_HIDE": "driver", **variables})


def results(folder):
    return {f.name: f.read_bytes() for f in sorted((folder / "results").iterdir())}


def attempts(folder):
    return sorted(f.name for f in (folder / "attempts").iterdir())


@pytest.mark.parametrize("threads", [None, "4"])
def test_a_unit_on_ray_has_the_drivers_threads(tmp_path, threads, monkeypatch):
    """Ray sets OMP_NUM_THREADS to a task's CPUs; the unit's process must not see that."""
    monkeypatch.syspath_prepend(str(SOURCE / "python"))
    from tilewright.cluster import perform
    unit = tmp_path / "unit"
    unit.write_text("#!/bin/sh\necho ${OMP_NUM_THREADS:-not set} >&2\n")
    unit.chmod(0o755)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    index, status, said = perform(str(unit), [], 3, threads, os.getpriority(os.PRIO_PROCESS, 0))
    assert (index, status, said.strip()) == (3, 0, threads or "not set")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Six units by the local engine."""
    tmp = tmp_path_factory.mktemp("units")
    ran = tilewright(tmp, *CROSS, "--count", 12, "--slice", 2, "--engine", "local", "--folder", "units", "--json", "table.json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return tmp


@pytest.fixture
def slurm(tmp_path):
    """Commands of a Slurm that is not there; variables for the program."""
    root, binaries = tmp_path / "slurm", tmp_path / "bin"
    root.mkdir(), binaries.mkdir()
    for name in ("sbatch", "squeue", "scancel", "sacct"):
        (binaries / name).symlink_to(SOURCE / "tests/units/fake_slurm.py")
    variables = {"PATH": f"{binaries}:{os.environ['PATH']}", "FAKE_SLURM": str(root)}
    daemon = subprocess.Popen([sys.executable, SOURCE / "tests/units/fake_slurm.py", "daemon"], env={**os.environ, **variables})
    yield variables
    daemon.kill()
    daemon.wait()


def test_units_are_done_once_and_the_table_is_that_of_the_command(done):
    folder = done / "units"
    assert len(results(folder)) == 6 and attempts(folder) == [f"{i}.1.json" for i in range(6)]
    plain = tilewright(done, *CROSS, "--count", 12, "--json", "plain.json")
    assert plain.returncode == 0

    def timeless(value):
        if isinstance(value, dict):
            return {k: timeless(v) for k, v in value.items() if k != "ms"}
        return [timeless(v) for v in value] if isinstance(value, list) else value
    mine, its = (timeless(json.loads((done / f).read_text())) for f in ("table.json", "plain.json"))
    assert mine == its
    # Again: nothing is done twice.
    before = results(folder)
    again = tilewright(done, *CROSS, "--count", 12, "--slice", 2, "--engine", "local", "--folder", "units")
    assert again.returncode == 0 and results(folder) == before and len(attempts(folder)) == 6
    # Another command does not get into the same folder.
    other = tilewright(done, *CROSS, "--count", 14, "--slice", 2, "--engine", "local", "--folder", "units")
    assert other.returncode == 2 and "holds other units" in other.stderr


def test_a_damaged_result_is_made_again(done, tmp_path):
    shutil.copytree(done / "units", tmp_path / "units")
    folder, before = tmp_path / "units", results(done / "units")
    (folder / "results/2.json").write_text("{torn")
    (folder / "results/3.json").write_text(json.dumps({**json.loads(before["3.json"]), "unit": "0" * 64}))
    (folder / "results/4.json").unlink()
    for unit in (2, 3, 4):
        ran = tilewright(tmp_path, "unit", "units", unit)
        assert ran.returncode == 0, ran.stderr
    assert results(folder) == before
    assert tilewright(tmp_path, "unit", "units", 99).returncode == 2


def test_slurm_gives_the_same_bytes_and_repeats_what_is_killed(done, tmp_path, slurm):
    (tmp_path / "slurm/kill-1").touch()
    (tmp_path / "slurm/trouble").write_text("deaf 2\n")
    ran = tilewright(tmp_path, *CROSS, "--count", 12, "--slice", 2, "--engine", "slurm", "--folder", "units", "--partition", "gpu", "--gres", "gpu:1", "--time", "10",
                     "--sbatch=--qos=low", "--workers", 4, "--json", "table.json", **slurm)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert results(tmp_path / "units") == results(done / "units")
    assert (tmp_path / "table.json").read_bytes() == (done / "table.json").read_bytes()
    log = (tmp_path / "slurm/sbatch.log").read_text().splitlines()
    assert "--array=0-5%4" in log[0] and "--partition=gpu --gres=gpu:1 --time=10 --qos=low" in log[0]
    # The killed one was started again, alone; where its kill came after its result, not even that.
    assert len(log) == 1 or (len(log) == 2 and "--array=1%4" in log[1] and "1.2.json" in attempts(tmp_path / "units"))


def test_the_driver_is_killed_and_another_attaches(done, tmp_path, slurm):
    words = [PROGRAM, *CROSS, "--count", "12", "--slice", "2", "--engine", "slurm", "--folder", "units"]
    driver = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, **slurm}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.time() + 30
    while not (tmp_path / "units/jobs.json").exists() and time.time() < end:
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    # Watching alone starts nothing; the jobs go on without anybody.
    ran = tilewright(tmp_path, "attach", "units", "--engine", "slurm", "--json", **slurm)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    state = json.loads(ran.stdout)
    assert state["done"] == 6 and state["failed"] == 0
    assert len((tmp_path / "slurm/sbatch.log").read_text().splitlines()) == 1
    assert results(tmp_path / "units") == results(done / "units")
    merged = tilewright(tmp_path, "merge", "units", "-o", "table.json")
    assert merged.returncode == 0 and (tmp_path / "table.json").read_bytes() == (done / "table.json").read_bytes()


def test_ctrl_c_detaches_and_says_how_to_attach(tmp_path, slurm):
    words = [PROGRAM, *CROSS, "--count", "400", "--slice", "100", "--engine", "slurm", "--folder", "units", "--partition", "main"]
    driver = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, **slurm}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.time() + 30
    while not (tmp_path / "units/jobs.json").exists() and time.time() < end:
        time.sleep(0.02)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=30)
    assert driver.returncode == 130
    assert "tilewright attach units --engine slurm --partition main" in said and "--cancel" in said
    assert tilewright(tmp_path, "attach", "units", "--engine", "slurm", "--cancel", **slurm).returncode == 0
    assert not list((tmp_path / "slurm/job-1").glob("[0-9]*"))


def slow_folder(tmp_path, seconds):
    """A folder of one unit that takes far longer than its limit."""
    ran = subprocess.Popen([PROGRAM, *CROSS, "--count", "4000", "--slice", "4000", "--engine", "local", "--folder", "units", "--unit-seconds", str(seconds)], cwd=tmp_path,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return ran, tmp_path / "units"


def test_a_unit_past_its_limit_is_tried_twice_and_reported(tmp_path):
    ran, folder = slow_folder(tmp_path, 0.5)
    _, said = ran.communicate(timeout=60)
    assert ran.returncode == 3 and "given up: seeds 5 to 4004: was stopped at the time limit" in said
    assert attempts(folder) == ["0.1.json", "0.2.json"] and not results(folder)
    assert "time limit" in json.loads((folder / "failed/0.json").read_text())["reasons"][0]
    # Nothing is left to try: another attempt is refused, and the folder stays as it is.
    assert tilewright(tmp_path, "unit", "units", 0).returncode == 1
    assert attempts(folder) == ["0.1.json", "0.2.json"]


def test_a_worker_that_is_killed_twice_is_reported_and_costs_only_itself(tmp_path):
    made = tilewright(tmp_path, *CROSS, "--count", 3, "--slice", 1, "--engine", "local", "--folder", "units")
    assert made.returncode == 0
    folder = tmp_path / "units"
    # As two kills leave it: attempts that never ended, and no result.
    (folder / "results/1.json").unlink()
    for n in (1, 2):
        (folder / f"attempts/1.{n}.json").write_text(json.dumps({"host": f"node{n}", "pid": 1, "started": time.time()}))
    ran = tilewright(tmp_path, "attach", "units", "--engine", "local", "--json")
    assert ran.returncode == 3
    state = json.loads(ran.stdout)
    assert state["done"] == 2 and state["failed"] == 1 and "killed or lost" in state["failures"][0]
    merged = tilewright(tmp_path, "merge", "units", "-o", "t.json")
    assert merged.returncode == 3 and "1 without a result" in merged.stdout


@pytest.mark.skipif(shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0, reason="no user namespaces: no small disk can be made")
def test_a_full_folder_is_said_and_nothing_else_is_lost(tmp_path):
    script = f"""
mount -t tmpfs -o size=256k none {tmp_path}/small || exit 77
cp -r {tmp_path}/units {tmp_path}/small/units
dd if=/dev/zero of={tmp_path}/small/ballast bs=1k count=1000 2>/dev/null
"{PROGRAM}" unit {tmp_path}/small/units 1; echo status $?
rm {tmp_path}/small/ballast
rm -f {tmp_path}/small/units/attempts/1.* {tmp_path}/small/units/failed/1.*
"{PROGRAM}" unit {tmp_path}/small/units 1; echo status $?
cp {tmp_path}/small/units/results/1.json {tmp_path}/late.json
"""
    made = tilewright(tmp_path, *CROSS, "--count", 2, "--slice", 1, "--engine", "local", "--folder", "units")
    assert made.returncode == 0
    expected = (tmp_path / "units/results/1.json").read_bytes()
    (tmp_path / "units/results/1.json").unlink()
    for f in (tmp_path / "units/attempts").glob("1.*"):
        f.unlink()
    (tmp_path / "small").mkdir()
    ran = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, timeout=120)
    if ran.returncode == 77:
        pytest.skip("tmpfs cannot be mounted here")
    statuses = [line for line in ran.stdout.splitlines() if line.startswith("status")]
    assert statuses[0] != "status 0" and statuses[1] == "status 0", ran.stdout + ran.stderr
    assert "No space left" in ran.stderr
    assert (tmp_path / "late.json").read_bytes() == expected


HOSTILE = {
    "a program": {"command": "sh", "words": ["-c", "touch owned"]},
    "an option that writes": {"command": "crosscheck", "words": ["--json=owned"]},
    "an export": {"command": "mutate", "words": ["inputs/k.py", "--export=owned"]},
    "a proposer": {"command": "optimize", "words": ["inputs/k.py", "--proposer=command:touch owned"]},
    "a journal": {"command": "optimize", "words": ["inputs/k.py", "--journal=owned"]},
    "a suite elsewhere": {"command": "bench", "words": ["--suite=./evil.json"]},
    "a file elsewhere": {"command": "mutate", "words": ["/etc/passwd"]},
    "a path in inputs": {"command": "mutate", "words": ["inputs/../../k.py"]},
    "an input that is not there": {"command": "mutate", "words": ["inputs/other.py"]},
    "python": {"command": "suite-task", "words": ["inputs/k.py"]},
    "words of another type": {"command": "crosscheck", "words": [7]},
    "no words": {"command": "crosscheck", "words": {"a": 1}},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_foreign_folder_starts_nothing_of_its_own(tmp_path, what, done):
    folder = tmp_path / "units"
    for below in ("inputs", "results", "attempts", "failed", "logs"):
        (folder / below).mkdir(parents=True)
    program = json.loads((done / "units/units.json").read_text())["program"]
    kernel = "import os\nos.system('touch owned')\n"
    (folder / "inputs/k.py").write_text(kernel)
    import hashlib
    manifest = {"schema": "tilewright units 1", "program": program, "command": "x\x1b[31m", "seconds": 0.5, "inputs": {"k.py": hashlib.sha256(kernel.encode()).hexdigest()},
                "units": [{"name": "evil", **HOSTILE[what]}], "about": {}}
    (folder / "units.json").write_text(json.dumps(manifest))
    (folder / "jobs.json").write_text(json.dumps({"slurm": ["1; touch owned", -1, {"x": 1}, 3.5]}))
    for words in (("unit", "units", 0), ("attach", "units", "--once"), ("attach", "units", "--engine", "local"), ("merge", "units", "-o", "t.json")):
        ran = tilewright(tmp_path, *words, timeout=60)
        assert ran.returncode in (0, 1, 2, 3), (words, ran.returncode, ran.stderr)
        assert "\x1b" not in ran.stdout + ran.stderr
    assert not list(tmp_path.glob("**/owned")), what
    assert not list((folder / "results").iterdir())


@pytest.mark.parametrize("below", ["inputs", "results", "attempts", "failed", "logs"])
def test_a_folder_of_links_is_refused(done, tmp_path, below):
    """Results are written, and damaged ones removed, below the units' folder: not where a link in it leads."""
    folder, elsewhere = tmp_path / "units", tmp_path / "elsewhere"
    shutil.copytree(done / "units", folder)
    elsewhere.mkdir()
    (elsewhere / "0.json").write_text("precious")
    shutil.rmtree(folder / below)
    (folder / below).symlink_to(elsewhere)
    for words in (("unit", "units", 0), ("attach", "units", "--engine", "local")):
        ran = tilewright(tmp_path, *words)
        assert ran.returncode == 2 and f"its folder '{below}' is a link" in ran.stderr, ran.stderr
    assert (elsewhere / "0.json").read_text() == "precious" and len(list(elsewhere.iterdir())) == 1


def test_manifests_that_are_damaged_are_refused_in_words(tmp_path, done):
    good = json.loads((done / "units/units.json").read_text())
    rng = random.Random(3)
    for case in range(40):
        folder = tmp_path / f"f{case}"
        shutil.copytree(done / "units", folder)
        text = json.dumps(good)
        if case % 2:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(['"', "{", "9" * 30, "\0", "null", ""]) + text[at + rng.randrange(20):]
        else:
            broken = json.loads(text)
            key = rng.choice(list(broken))
            broken[key] = rng.choice([None, [], {}, "x", -1, [[[]]], [{"name": 1}], {"a": {"b": 2}}])
            text = json.dumps(broken)
        (folder / "units.json").write_text(text)
        for words in (("attach", folder, "--once", "--json"), ("merge", folder, "-o", "t.json")):
            ran = tilewright(tmp_path, *words)
            assert ran.returncode in (0, 1, 2, 3), (case, words, ran.returncode, ran.stderr)
        shutil.rmtree(folder)


def test_merging_folders_in_any_order_gives_the_same_bytes(done, tmp_path):
    rng = random.Random(11)
    folders = []
    for n in range(3):
        folder = tmp_path / f"part{n}"
        shutil.copytree(done / "units", folder)
        for unit in range(6):
            if rng.random() < 0.5:
                (folder / f"results/{unit}.json").unlink()
        folders.append(folder)
    # One says something else of a unit: the conflict is named, and resolved by content.
    (folders[0] / "results/0.json").write_bytes((done / "units/results/0.json").read_bytes())
    changed = json.loads((done / "units/results/0.json").read_text())
    changed["result"]["rows"][0]["proved"] = not changed["result"]["rows"][0]["proved"]
    (folders[1] / "results/0.json").write_text(json.dumps(changed))
    tables, statuses = set(), set()
    for order in itertools.permutations(folders):
        ran = tilewright(tmp_path, "merge", *order, "-o", "t.json")
        statuses.add(ran.returncode)
        assert "2 different results" in ran.stderr
        tables.add((tmp_path / "t.json").read_bytes())
    assert len(tables) == 1 and statuses == {1}
    # Whole and without conflict: the table of the command itself.
    whole = tilewright(tmp_path, "merge", done / "units", done / "units", "-o", "t.json")
    assert whole.returncode == 0 and (tmp_path / "t.json").read_bytes() == (done / "table.json").read_bytes()


def journal_of(path, template, rows):
    import sqlite3
    shutil.copy(template, path)
    with sqlite3.connect(path) as db:
        for run in rows:
            db.execute("INSERT INTO runs VALUES(?,?,?,?,'{}','{}','finished','done',?,2,'0.1')", (run["id"], "t", run["task"], "builtin", run["started"]))
            for n in range(run["steps"]):
                db.execute("INSERT INTO steps VALUES(?,?,?,'first','','accepted','proved','','',?,'',NULL,NULL,NULL,0.5,7,'[]','{}','{}')", (run["id"], n, n - 1, f"source {run['body']} {n}"))
    db.close()


def memory_of(path, template, rows):
    import sqlite3
    shutil.copy(template, path)
    with sqlite3.connect(path) as db:
        db.executemany("INSERT INTO observation VALUES(?,?,?,?,?,?,?)", rows)
    db.close()


@pytest.fixture(scope="module")
def empty_databases(tmp_path_factory):
    import sqlite3
    tmp = tmp_path_factory.mktemp("databases")
    task = tmp / "scale.toml"
    task.write_text('name = "scale"\ncomputes = "Y[n] = X[n] * 2.0"\ntarget = "sm_90a"\n[sizes]\nN = 64\n[tensors]\nX = { dtype = "f32", dims = ["N"] }\nY = { dtype = "f32", dims = ["N"] }\n')
    ran = tilewright(tmp, "optimize", task, "--steps", 1, "--no-gpu", "--journal", "j.db", "--memory", "m.db")
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    for file, tables in (("j.db", ("exchanges", "steps", "runs")), ("m.db", ("observation",))):
        with sqlite3.connect(tmp / file) as db:
            for table in tables:
                db.execute(f"DELETE FROM {table}")
        db.close()
    return tmp


@pytest.mark.parametrize("seed", range(4))
def test_merging_journals_and_memories_in_any_order_gives_the_same_bytes(tmp_path, empty_databases, seed):
    rng = random.Random(seed)
    journals, memories = [], []
    for n in range(4):
        # Few ids, so that runs are shared, continue one another and conflict.
        runs = {f"run-{rng.randrange(4)}": {"task": "t", "started": 1, "steps": rng.randrange(4), "body": rng.choice("ab")} for _ in range(3)}
        journals.append(tmp_path / f"{n}.db")
        journal_of(journals[-1], empty_databases / "j.db", [{"id": i, **r} for i, r in runs.items()])
        memories.append(tmp_path / f"m{n}.db")
        memory_of(memories[-1], empty_databases / "m.db", [("elementwise", "memory", "dram", f"t{rng.randrange(2)}", rng.choice([0.5, 0.25]), "", f"run-{rng.randrange(3)}") for _ in range(5)])
    seen = set()
    for order in (list(range(4)), [3, 2, 1, 0], rng.sample(range(4), 4)):
        inputs = [journals[i] for i in order] + [memories[i] for i in order]
        rng.shuffle(inputs)
        ran = tilewright(tmp_path, "merge", *inputs, "--journal", "out.db", "--memory", "mem.db")
        assert ran.returncode == 0, ran.stderr
        seen.add(((tmp_path / "out.db").read_bytes(), (tmp_path / "mem.db").read_bytes()))
    assert len(seen) == 1
    # Once more with its own result: nothing changes.
    ran = tilewright(tmp_path, "merge", *journals, *memories, "out.db", "mem.db", "--journal", "again.db", "--memory", "mem2.db")
    assert ran.returncode == 0
    assert ((tmp_path / "again.db").read_bytes(), (tmp_path / "mem2.db").read_bytes()) in seen
    listed = json.loads(tilewright(tmp_path, "runs", "--json", "--journal", "out.db").stdout)
    assert {r["id"][:5] for r in (listed if isinstance(listed, list) else listed["runs"])} <= {f"run-{i}" for i in range(4)}


def test_mutants_and_tuning_by_units(tmp_path):
    kernel = SOURCE / "kernels/vector_add.py"
    ran = tilewright(tmp_path, "mutate", kernel, "--limit", 1, "--operator", "index/element", "--engine", "local", "--json", "m.json", "--folder", "m")
    assert ran.returncode == 0, ran.stderr
    rows = json.loads((tmp_path / "m.json").read_text())["rows"]
    assert [r["operator"] for r in rows] == ["index/element"] and rows[0]["mutants"] >= 1 and rows[0]["missed"] == 0
    ran = tilewright(tmp_path, "tune", kernel, "--shape", "N=1000", "--shape", "N=5000", "--limit", 1, "--engine", "local", "--folder", "t", "--json", "t.json")
    assert ran.returncode == 3 and "no GPU" in ran.stdout, ran.stdout + ran.stderr
    assert len(results(tmp_path / "t")) == 2
    assert not kernel.with_suffix(".tuned.json").exists() or "vector_add" in kernel.with_suffix(".tuned.json").read_text()
    assert not list(tmp_path.glob("**/*.tuned.json"))


def ray_python():
    for python in (os.environ.get("TILEWRIGHT_RAY_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import ray"], capture_output=True).returncode == 0:
            return python
    return None


@pytest.mark.skipif(ray_python() is None, reason="the package ray is not installed")
def test_ray_gives_the_same_bytes(done, tmp_path):
    ran = tilewright(tmp_path, *CROSS, "--count", 12, "--slice", 2, "--engine", "ray", "--folder", "units", "--json", "table.json", TILEWRIGHT_PYTHON=ray_python())
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert results(tmp_path / "units") == results(done / "units")


def test_an_engine_that_is_not_there_is_said(tmp_path):
    ran = tilewright(tmp_path, *CROSS, "--count", 2, "--engine", "slurm", "--folder", "units", PATH="/nowhere")
    assert ran.returncode == 2 and "sbatch" in ran.stderr and "PATH" in ran.stderr
