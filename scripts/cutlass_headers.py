#!/usr/bin/env python3
"""The headers of CUTLASS that CuTe kernels include, without the rest of the library.

    python3 scripts/cutlass_headers.py FROM TO

FROM is the include folder of CUTLASS, TO a folder to write. Taken: all of cute/, cutlass's own top folder, its arch/ and pipeline/, and whatever those include in turn (14 of 27 MB). Prints the number of files.
"""
import pathlib
import re
import shutil
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
ROOTS = ("cute/**/*.hpp", "cutlass/*.h", "cutlass/*.hpp", "cutlass/arch/*.h", "cutlass/pipeline/*.hpp")


def closure(source):
    waiting = [path.relative_to(source).as_posix() for pattern in ROOTS for path in source.glob(pattern)]
    taken = set()
    while waiting:
        name = waiting.pop()
        if name in taken or not (source / name).is_file():
            continue
        taken.add(name)
        for included in INCLUDE.findall((source / name).read_text(errors="replace")):
            waiting += [included, (pathlib.PurePosixPath(name).parent / included).as_posix()]
    return sorted(name for name in taken if ".." not in name)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, to = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not (source / "cute/tensor.hpp").is_file():
        sys.exit(f"cutlass_headers: {source} does not hold cute/tensor.hpp")
    names = closure(source)
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, to / name)
    print(len(names))


main()
