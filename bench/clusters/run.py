#!/usr/bin/env python3
"""`make test-clusters`: 60 units on a real Slurm and a real Ray cluster, with faults; results must be those of `local`, byte for byte.

    python3 bench/clusters/run.py --program build/bin/tilewright --ray-python ENV/bin/python --out bench/results/clusters

For each engine, a plain run, and one in which a worker is killed with -9, a node is taken away and the driver is killed with -9, after which another one
attaches. A third run of units that do nothing says what starting a unit costs. Slurm is Debian's (apt-get install slurm-wlm), Ray PyPI's (pip install ray);
what is missing is said and leaves its part out. Writes engines.json and prints what engines.log keeps.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rigs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UNITS = 60
# Proofs and runs of the emulator; bounded by runs, not by seconds, so that a result does not depend on the machine.
WORK = ["crosscheck", "--seed", "4000", "--count", str(2 * UNITS), "--slice", "2", "--trials", "600", "--trials-other", "600", "--trial-count", "4"]
IDLE = ["crosscheck", "--seed", "1", "--count", str(UNITS), "--slice", "1", "--family", "elementwise", "--trials", "600", "--trials-other", "600", "--trial-count", "1"]


def say(text):
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def results(folder):
    return {f.name: f.read_bytes() for f in (folder / "results").glob("*.json")}


def count(folder, below="results"):
    return len(list((folder / below).glob("*.json"))) if (folder / below).exists() else 0


class Bench:
    def __init__(self, program, scratch):
        self.program, self.scratch = program, scratch

    def words(self, work, name, engine):
        return [self.program, *work, "--folder", str(self.scratch / name), "--json", str(self.scratch / f"{name}.json"), *engine]

    def plain(self, work, name, engine, environment):
        begin = time.time()
        done = subprocess.run(self.words(work, name, engine), env=environment, capture_output=True, text=True, timeout=1500)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: status {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
        return time.time() - begin

    def with_faults(self, name, engine, environment, kill_worker, take_node, bring_node):
        """A worker killed, a node gone and come again, the driver killed; then attach. Returns seconds and what happened."""
        folder = self.scratch / name
        begin, events = time.time(), []

        def at(number, what, do):
            rigs.wait_for(f"{name}: {number} results", lambda: count(folder) >= number, 900)
            answer = do()
            events.append({"done": count(folder), "what": what, "detail": str(answer), "seconds": round(time.time() - begin, 1)})
            say(f"{name}: at {count(folder)} of {UNITS}: {what}: {answer}")
        driver = subprocess.Popen(self.words(WORK, name, engine), env=environment, stdout=subprocess.DEVNULL, stderr=open(self.scratch / f"{name}.err", "wb"))
        at(8, "a worker is killed with -9", lambda: kill_worker(folder))
        at(15, "a node is taken away", take_node)
        at(25, "the driver is killed with -9", lambda: (driver.kill(), driver.wait())[1])
        at(28, "the node comes back", bring_node)
        attach = subprocess.run([self.program, "attach", str(folder), *engine, "--json"], env=environment, capture_output=True, text=True, timeout=1500)
        if attach.returncode != 0:
            raise RuntimeError(f"{name}: attach: status {attach.returncode}\n{attach.stdout[-1500:]}{attach.stderr[-3000:]}")
        state = json.loads(attach.stdout)
        repeated = sorted(f.name for f in (folder / "attempts").glob("*.2.json"))
        return time.time() - begin, events, state, repeated


def unit_processes(folder):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) > 3 and words[1] == b"unit" and words[2] == str(folder).encode():
                found.append((int(entry.name), words[-2].decode()))
    return found


def kill_a_unit(folder):
    rigs.wait_for("a running unit", lambda: bool(unit_processes(folder)), 60)
    pid, unit = unit_processes(folder)[0]
    os.kill(pid, signal.SIGKILL)
    return f"unit {unit}, process {pid}"


def kill_a_ray_worker(folder):
    """The worker process of Ray itself, with the unit that it has started."""
    rigs.wait_for("a running unit", lambda: bool(unit_processes(folder)), 60)
    pid, unit = unit_processes(folder)[0]
    parent = int((pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    return f"Ray's worker {parent} of unit {unit}"


def judge(report, name, bench, expected, extra):
    same = results(bench.scratch / name) == expected
    report[name] = {"identical_to_local": same, "units": count(bench.scratch / name), **extra}
    say(f"{name}: {count(bench.scratch / name)} of {UNITS} units, {'identical to local' if same else 'NOT IDENTICAL'}; {json.dumps(extra)[:400]}")
    return same


def cost(bench, name, engine, environment, slots, own):
    """Seconds that a slot spends on a unit beyond the unit itself."""
    seconds = bench.plain(IDLE, name, engine, environment)
    return {"seconds": round(seconds, 2), "overhead_s": round(max(0.0, seconds * slots / UNITS - own), 3)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/bin/tilewright"))
    parser.add_argument("--ray-python", default=os.environ.get("TILEWRIGHT_RAY_PYTHON", ""))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results/clusters")
    parser.add_argument("--only", choices=("slurm", "ray"))
    options = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="tilewright-clusters-"))
    bench = Bench(str(pathlib.Path(options.program).resolve()), scratch)
    environment = {**os.environ, "TILEWRIGHT_CACHE": str(scratch / "cache"), "TILEWRIGHT_HIDE": "driver"}
    report, fine = {"units": UNITS, "command": " ".join(["tilewright", *WORK]), "engines": {}, "overhead_s": {}, "dispatch_s": {}}, True
    engines = report["engines"]
    say(f"local: {UNITS} units of `tilewright {' '.join(WORK)}`")
    seconds = bench.plain(WORK, "local", ["--engine", "local", "--workers", "2"], environment)
    expected = results(scratch / "local")
    fine &= judge(engines, "local", bench, expected, {"seconds": round(seconds, 1)})
    idle = bench.plain(IDLE, "local-idle", ["--engine", "local", "--workers", "1"], environment)
    own = idle / UNITS
    report["overhead_s"]["local"] = round(own, 3)
    if options.only != "ray":
        missing = rigs.Slurm.missing()
        if missing:
            say(f"slurm: left out, this machine lacks {', '.join(missing)} (apt-get install slurm-wlm)")
        else:
            with rigs.Slurm(scratch / "slurm-rig") as slurm:
                say("slurm " + slurm.command("sbatch", "--version").strip() + ": a controller and two node daemons")
                env = {**slurm.environment(), "TILEWRIGHT_CACHE": environment["TILEWRIGHT_CACHE"], "TILEWRIGHT_HIDE": "driver"}
                engine = ["--engine", "slurm", "--partition", "main", "--time", "20"]
                seconds = bench.plain(WORK, "slurm", engine, env)
                fine &= judge(engines, "slurm", bench, expected, {"seconds": round(seconds, 1), "version": slurm.command("sbatch", "--version").strip()})
                seconds, events, state, repeated = bench.with_faults("slurm-faults", engine, env, kill_a_unit, lambda: slurm.take_node_away("n2"), lambda: slurm.start_node("n2"))
                fine &= judge(engines, "slurm-faults", bench, expected, {"seconds": round(seconds, 1), "events": events, "state": state, "repeated": repeated})
                report["overhead_s"]["slurm"] = cost(bench, "slurm-idle", engine, env, 4, own)["overhead_s"]
    if options.only != "slurm":
        python = options.ray_python
        version = subprocess.run([python, "-c", "import ray; print(ray.__version__)"], capture_output=True, text=True).stdout.strip() if python else ""
        if not version:
            say("ray: left out, no Python with ray was named (--ray-python, TILEWRIGHT_RAY_PYTHON)")
        else:
            with rigs.Ray(scratch / "ray-rig", python) as ray:
                say(f"ray {version}: a head and a node, {ray.address}")
                env = {**environment, "TILEWRIGHT_PYTHON": python}
                engine = ["--engine", "ray", "--address", ray.address]
                seconds = bench.plain(WORK, "ray", engine, env)
                fine &= judge(engines, "ray", bench, expected, {"seconds": round(seconds, 1), "version": version})
                seconds, events, state, repeated = bench.with_faults("ray-faults", engine, env, kill_a_ray_worker, ray.take_node_away, ray.add_node)
                fine &= judge(engines, "ray-faults", bench, expected, {"seconds": round(seconds, 1), "events": events, "state": state, "repeated": repeated})
                report["overhead_s"]["ray"] = cost(bench, "ray-idle", engine, env, 4, own)["overhead_s"]
            seconds = bench.plain(WORK, "ray-own", ["--engine", "ray"], {**environment, "TILEWRIGHT_PYTHON": python})
            fine &= judge(engines, "ray-own", bench, expected, {"seconds": round(seconds, 1), "what": "a cluster of its own, no address"})
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "engines.json").write_text(json.dumps(report, indent=1) + "\n")
    say(f"seconds that starting a unit costs: {report['overhead_s']}")
    say("everything as it should be" if fine else "FAILED")
    if fine:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
