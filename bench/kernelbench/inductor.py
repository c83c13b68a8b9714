#!/usr/bin/env python3
"""Compiles KernelBench tasks with torch.compile in processes side by side, so that a later process finds them in torch's cache on disk.

    python3 bench/kernelbench/inductor.py STATE TASK.py ...          # one worker; several share the folder STATE

Each worker takes the next task that no other has taken (a file STATE/NAME.taken), compiles and calls the module once, and leaves STATE/NAME.done. A task that
fails leaves the reason in that file; run.py then compiles it itself, or goes without.
"""
import gc
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


def workers(count, state, tasks):
    """Starts the worker processes."""
    import subprocess
    state.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1", PYTHONWARNINGS="ignore")
    return [subprocess.Popen([sys.executable, __file__, str(state), *map(str, tasks)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)]


def done(state, path):
    """"" where the task was compiled, else why it was not."""
    note = state / f"{path.parent.name}-{path.stem}.done"
    return note.read_text() if note.exists() else "not reached"


def main():
    import torch
    from run import inputs_of, load_task
    state = pathlib.Path(sys.argv[1])
    for path in map(pathlib.Path, sys.argv[2:]):
        name = f"{path.parent.name}-{path.stem}"
        try:
            os.close(os.open(state / f"{name}.taken", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        why = ""
        try:
            model, get_inputs = load_task(path)
            with torch.no_grad():
                torch.compile(model)(*inputs_of(get_inputs, 42))
            torch.cuda.synchronize()
        except Exception as error:  # one task must not end the worker
            why = f"{type(error).__name__}: {str(error)[:200]}"
        model = None
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        (state / f"{name}.done").write_text(why)
    return 0


if __name__ == "__main__":
    sys.exit(main())
