#!/usr/bin/env python3
"""make_wheel.py DIST OUT: the folder that make_dist.sh made, as a wheel: tilewright-VERSION-py3-none-manylinux_2_NN_x86_64.whl in OUT.

One wheel for every Python from 3.9 on: the package is Python over a C library, loaded with ctypes. The folder becomes tilewright/_dist, the package's own files
tilewright/. The platform tag is what the symbols of the files inside ask for, not what the build machine has.
"""
import base64
import csv
import hashlib
import io
import os
import re
import stat
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What every system of a manylinux tag has (PEP 600); anything else that is needed must be inside the wheel.
SYSTEM = re.compile(r"^(ld-linux-x86-64\.so\.2|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so\.\d+)$")
# C++ symbol versions of the oldest system that each glibc came with in distributions.
MOST = {"2_34": {"GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (12,)}, "2_36": {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12,)},
        "2_38": {"GLIBCXX": (3, 4, 32), "CXXABI": (1, 3, 14), "GCC": (13,)}}


def elf_files(folder):
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as f:
                if f.read(4) == b"\x7fELF":
                    yield path


def needs(path):
    """(libraries, {namespace: highest version}) that an ELF file asks the system for."""
    text = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True).stdout
    libraries = re.findall(r"NEEDED\s+(\S+)", text)
    highest = {}
    asked = text[text.find("Version References:"):] if "Version References:" in text else ""
    for namespace, version in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", asked):
        value = tuple(int(n) for n in version.split("."))
        highest[namespace] = max(highest.get(namespace, ()), value)
    return libraries, highest


def platform_tag(folder):
    """The oldest manylinux that has everything, and why."""
    present = {os.path.basename(f) for f in elf_files(folder)}
    highest, owner = {}, {}
    for path in elf_files(folder):
        libraries, versions = needs(path)
        for library in libraries:
            if library not in present and not SYSTEM.match(library):
                sys.exit(f"make_wheel: {os.path.relpath(path, folder)} needs {library}, which is neither in the wheel nor on every system")
        for namespace, version in versions.items():
            if version > highest.get(namespace, ()):
                highest[namespace], owner[namespace] = version, os.path.relpath(path, folder)
    for tag, most in MOST.items():
        glibc = tuple(int(n) for n in tag.split("_"))
        if highest.get("GLIBC", ()) <= glibc and all(highest.get(n, ()) <= version for n, version in most.items()):
            for namespace, version in sorted(highest.items()):
                print(f"make_wheel: {namespace}_{'.'.join(map(str, version))} is the newest it asks for ({owner[namespace]})")
            return f"manylinux_{tag}_x86_64"
    sys.exit(f"make_wheel: symbols newer than any known tag: {highest}")


def metadata(version):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    with open(os.path.join(ROOT, "scripts", "dependencies.txt"), encoding="utf-8") as f:
        nvrtc = next(line.split()[1] for line in f if line.startswith("pypi nvidia-cuda-nvrtc"))
    pinned = nvrtc.split("==")[1]
    major = int(pinned.split(".")[0])
    return (f"Metadata-Version: 2.1\nName: tilewright\nVersion: {version}\nSummary: GPU kernels that are proved to move their data correctly and measured to be fast\n"
            f"License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: nvidia-cuda-nvrtc>={major},<{major + 1}\nProvides-Extra: torch\nRequires-Dist: torch>=2.6; extra == \"torch\"\n"
            "Classifier: Programming Language :: Python :: 3\nClassifier: Operating System :: POSIX :: Linux\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


class Wheel:
    """A zip with its RECORD; the same input gives the same bytes."""

    def __init__(self, path):
        self.zip, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9), []

    def add(self, name, data, executable=False):
        entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append((name, f"sha256={digest}", len(data)))

    def close(self, info):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([*self.record, (f"{info}/RECORD", "", "")])
        self.zip.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2026, 1, 1, 0, 0, 0)), out.getvalue())
        self.zip.close()


def main():
    dist, out = sys.argv[1:3]
    version = subprocess.run([os.path.join(dist, "bin", "tilewright"), "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    tag = platform_tag(dist)
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"tilewright-{version}-py3-none-{tag}.whl")
    wheel, info = Wheel(path), f"tilewright-{version}.dist-info"
    for where, folders, names in os.walk(dist):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(where, name)
            inside = os.path.relpath(file, dist)
            if "__pycache__" in inside:
                continue
            # The package itself is where Python looks for it; everything else is beside the program.
            target = inside[len("python/"):] if inside.startswith("python/") else f"tilewright/_dist/{inside}"
            with open(file, "rb") as f:
                wheel.add(target, f.read(), os.access(file, os.X_OK))
    wheel.add(f"{info}/METADATA", metadata(version).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tilewright make_wheel\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode())
    wheel.add(f"{info}/entry_points.txt", b"[console_scripts]\ntilewright = tilewright._program:main\n")
    wheel.close(info)
    print(f"{os.path.relpath(path)}: {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
