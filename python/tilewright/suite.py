"""One task of a benchmark: imported, generated, proved; on a GPU tested and timed. `tilewright suite` starts a process of it for each task.

    python3 -m tilewright.suite FILE --out RESULT.json --level 1 [--no-gpu] [--compile] [--solution]

The result is {"row": what the table shows, "versions", "files": {"graph.json", "kernels.py", "plan.json", "report.json"}, "solution": ModelNew as text}.
"""
import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from . import _paths, graph
from ._solution import solution


def part(name):
    """A module of bench/kernelbench: how tasks are prepared and measured is written there once."""
    folder = pathlib.Path(os.environ.get("TILEWRIGHT_BENCH") or _paths.root()) / "bench/kernelbench"
    spec = importlib.util.spec_from_file_location("tilewright_kernelbench_" + name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def gpu_alone():
    """The lock that everything of ours which times on this GPU takes."""
    path = os.environ.get("TILEWRIGHT_GPU_LOCK")
    if not path:
        yield
        return
    import fcntl
    with open(path, "a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def versions():
    import torch
    found = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=driver_version,clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20)
        driver, sm, memory, most = [word.strip() for word in said.stdout.splitlines()[0].split(",")]
        found.update(driver=driver, clocks={"sm": sm, "memory": memory, "max_sm": most})
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        pass
    return found


def precision():
    """How torch's library rounds convolutions on the machine that was measured (bench/kernelbench/precision.py); without it, by the front end's rule."""
    path = os.environ.get("TILEWRIGHT_KERNELBENCH_PRECISION")
    return json.loads(pathlib.Path(path).read_text())["tasks"] if path else {}


def run(options):
    text = pathlib.Path(options.file).read_text()
    with tempfile.TemporaryDirectory() as scratch:
        # Under the benchmark's own name: what is known of a task is known by it.
        path = pathlib.Path(scratch) / f"level{options.level}" / pathlib.Path(options.file).name
        path.parent.mkdir()
        path.write_text(text)
        folder = pathlib.Path(scratch) / "made"
        row = part("prepare").prepare(graph, path, folder, options.program, options.limit_seconds, 1, precision())
        files = {f.name: f.read_text() for f in sorted(folder.glob("*")) if f.name in ("graph.json", "kernels.py", "plan.json", "report.json")}
        result = {"row": row, "files": files}
        if "plan.json" in files and not options.no_gpu:
            import torch
            if torch.cuda.is_available():
                run_part = part("run")
                run_part.compile_all([folder], options.program)  # others may have the GPU meanwhile
                with gpu_alone():
                    try:
                        result["row"].update(run_part.measure(path, folder, options))
                    except Exception as error:  # a task that fails is a row, not a unit that is repeated
                        result["row"].update(official=False, ours=False, why=f"{type(error).__name__}: {str(error)[:300]}")
                    result["versions"] = versions()
        if options.solution and "plan.json" in files:
            result["solution"] = solution(text, files["kernels.py"], files["plan.json"], files["report.json"])
    pathlib.Path(options.out).write_text(json.dumps(result))
    return 0


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python3 -m tilewright.suite", description="one task of a benchmark; started by `tilewright suite`")
    parser.add_argument("file")
    parser.add_argument("--out", required=True)
    parser.add_argument("--level", type=int, required=True)
    parser.add_argument("--program", default=_paths.program())
    parser.add_argument("--limit-seconds", type=float, default=20)
    parser.add_argument("--each", type=float, default=0.4)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--no-gpu", action="store_true")
    parser.add_argument("--solution", action="store_true")
    return run(parser.parse_args(arguments, argparse.Namespace(compile_times=None)))


if __name__ == "__main__":
    sys.exit(main())
