"""Units of work on a Ray cluster (docs/clusters.md). `tilewright COMMAND --engine ray` starts this; nobody else needs to.

    python3 -m tilewright.cluster FOLDER --units FILE --program PROGRAM [--address ADDRESS] [--num-gpus N] -- unit FOLDER
    python3 -m tilewright.cluster FOLDER --cancel --address ADDRESS

A unit is one Ray task that starts `tilewright unit FOLDER INDEX`. The tasks belong to an actor, the keeper. On a cluster with an address the keeper
is detached: it goes on when this process ends, and a later one finds it by the folder's name. Without an address a cluster is started here and ends
with this process. What is done is said by the folder alone; what this process returns is of no matter.
"""
import argparse
import hashlib
import os
import pathlib
import signal
import sys

NAMESPACE = "tilewright"


def keeper_name(folder):
    return "units-" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]


def perform(program, words, index, threads, niceness):
    """One unit, on whichever node: the last words of its process, and its exit status. `threads`: the driver's OMP_NUM_THREADS, or None."""
    import contextlib
    import shutil
    import subprocess

    # A node may have the program elsewhere.
    found = program if os.access(program, os.X_OK) else shutil.which("tilewright")
    if not found:
        return index, 127, f"{program} is not on this node, and tilewright not in PATH"
    # Ray sets the variable to the CPUs of a task: torch would import, make inputs and compile on one core where `local` has them all.
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    if threads is None:
        del environment["OMP_NUM_THREADS"]
    # Ray gives its workers a niceness of 15, and what a unit times is no longer what it is elsewhere.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    # The unit ends with this worker by itself: a function to run between fork and exec would have Python copy the worker's whole address space.
    done = subprocess.run([found, *words, str(index), "--parent", str(os.getpid())], capture_output=True, text=True, errors="replace", env=environment)
    return index, done.returncode, done.stderr[-400:]


def nothing():
    """A task that only has its worker started."""


class Keeper:
    """Owns the tasks of one folder."""

    def __init__(self, program, words, num_gpus, jobs, threads, niceness):
        import ray
        # Ray repeats a task whose worker or node is lost once; how often a unit is tried in all is bounded by its folder.
        self.task = ray.remote(perform).options(num_cpus=1, num_gpus=num_gpus, max_retries=1)
        self.program, self.words, self.jobs, self.threads, self.niceness = program, words, jobs, threads, niceness

    def work(self, units):
        import ray
        waiting, running, lost = list(reversed(units)), {}, []
        while waiting or running:
            while waiting and (self.jobs <= 0 or len(running) < self.jobs):
                unit = waiting.pop()
                running[self.task.remote(self.program, self.words, unit, self.threads, self.niceness)] = unit
            ended, _ = ray.wait(list(running), num_returns=1)
            for reference in ended:
                unit = running.pop(reference)
                try:
                    _, status, said = ray.get(reference)
                    if status != 0:
                        lost.append((unit, f"status {status}: {said.strip()}"))
                except Exception as error:  # the worker was lost twice: the driver decides
                    lost.append((unit, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"))
        return lost


def find_keeper(name):
    import ray
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python3 -m tilewright.cluster", description="units of work on a Ray cluster; started by --engine ray")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--units", type=pathlib.Path, help="file with the numbers of the units, with commas between")
    parser.add_argument("--program")
    parser.add_argument("--address")
    parser.add_argument("--num-gpus", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--cancel", action="store_true")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    cut = arguments.index("--") if "--" in arguments else len(arguments)  # after it: the words of one unit's process
    options, words = parser.parse_args(arguments[:cut]), arguments[cut + 1:]
    try:
        import ray
    except ImportError:
        print("tilewright: the package ray is not installed in " + sys.executable + "\n  fix: pip install ray, or name another Python with TILEWRIGHT_PYTHON", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ.setdefault("RAY_worker_niceness", str(max(0, os.getpriority(os.PRIO_PROCESS, 0))))  # of a cluster that is started here
    ray.init(address=options.address or "local", namespace=NAMESPACE, include_dashboard=False, log_to_driver=False, logging_level="warning")
    name = keeper_name(options.folder)
    keeper = find_keeper(name)
    if options.cancel:
        if keeper is not None:
            ray.kill(keeper)
        return 0
    units = [int(n) for n in options.units.read_text().split(",")]
    if keeper is None:
        # A worker takes a second to start: the first unit's does so beside the keeper's.
        ray.remote(nothing).options(num_cpus=1, num_gpus=options.num_gpus).remote()
        # On the head node, which the cluster cannot lose: the others come and go.
        head = {"node:__internal_head__": 0.001} if ray.cluster_resources().get("node:__internal_head__") else {}
        keeper = ray.remote(Keeper).options(name=name, namespace=NAMESPACE, lifetime="detached", num_cpus=0, resources=head).remote(
            options.program, words, options.num_gpus, options.jobs, os.environ.get("OMP_NUM_THREADS"), os.getpriority(os.PRIO_PROCESS, 0))
        promise = keeper.work.remote(units)
    else:
        promise = keeper.work.remote([])  # an actor's calls come one after another: this one ends when those before it have
    for unit, why in ray.get(promise):
        print(f"unit {unit}: {why}", flush=True)
    ray.kill(keeper)
    return 0


if __name__ == "__main__":
    sys.exit(main())
