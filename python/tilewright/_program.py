"""The console script `tilewright`: the program of this package, told where Python's packages are."""
import os
import sys

from . import _paths


def main():
    program = _paths.program()
    if program is None:
        sys.exit("tilewright: the program was not found\n  fix: build it (make), or set TILEWRIGHT_PROGRAM")
    _paths.show_python_packages()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
