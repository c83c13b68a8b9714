#!/usr/bin/env python3
"""Writes the CUDA text of every kernel file into a folder, one file each, so that two versions of the compiler can be compared:

    python3 scripts/emitted_text.py build/bin/tilewright before
    ... change the compiler ...
    python3 scripts/emitted_text.py build/bin/tilewright after && diff -r before after
"""
import pathlib
import subprocess
import sys


def main() -> int:
    program, out = sys.argv[1], pathlib.Path(sys.argv[2])
    root = pathlib.Path(__file__).resolve().parent.parent
    out.mkdir(parents=True, exist_ok=True)
    files = sorted(root.glob("kernels/*.py")) + sorted(root.glob("examples/*.py")) + sorted(root.glob("tests/codegen/cpu/*.py"))
    failed = 0
    for file in files:
        name = file.relative_to(root)
        run = subprocess.run([program, "emit", str(name)], cwd=root, capture_output=True, text=True)
        text = run.stdout if run.returncode == 0 else f"exit {run.returncode}\n{run.stdout}{run.stderr}"
        failed += run.returncode != 0
        (out / ("_".join(name.parts)).replace(".py", ".cu")).write_text(text)
    print(f"{len(files)} files, {failed} not emitted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
