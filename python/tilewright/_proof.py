"""Verdicts: the program's check of a file, and what it recorded about earlier ones.

`tilewright check` writes what it found into the cache folder, under a digest of the program's version, the constants and
the text of the file and of those that it imports. So a kernel
that was checked on the command line is known here, and a changed one is not.
"""
import hashlib
import json
import os
import stat
import subprocess
import tempfile

from . import _paths
from ._library import TilewrightError, version


class CheckResult:
    """What a check said: `verdict`, its text as the command line has it, and its JSON. True where everything is proved."""

    def __init__(self, verdict, text, data):
        self.verdict, self.text, self.json = verdict, text, data

    def __bool__(self):
        return self.verdict == "proved"

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"<check: {self.verdict}>"


def _record(text_digest, constants):
    named = ",".join(f"{n}={constants[n]}" for n in sorted(constants))
    digest = hashlib.sha256(b"\0".join(part.encode() for part in (version(), named, text_digest))).hexdigest()
    return os.path.join(_paths.cache(), "verdicts", digest + ".json")


def recorded(text_digest, constants, kernel):
    """The verdict of an earlier check of a text (with those that it imports), or None."""
    try:
        verdict = json.loads(_own(_record(text_digest, constants)))["kernels"].get(kernel)
        return verdict if isinstance(verdict, str) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _own(path):
    """The text of a record that nobody else can have written, as src/runtime/cubin_cache.h has it: a record of another user proves nothing."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as f:
        found, folder = os.fstat(f.fileno()), os.stat(os.path.dirname(path))
        if not stat.S_ISREG(found.st_mode) or found.st_size > 1 << 20:
            raise OSError("no record")
        if found.st_uid not in (os.geteuid(), 0) or found.st_mode & stat.S_IWOTH or (folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX):
            raise OSError("not ours")
        return f.read(1 << 20)


def check(file, constants, kernel, source=None, search=None, audit=None, timeout=600):
    """Runs `tilewright check`; see docs/verifier.md for its options and its JSON."""
    program = _paths.program()
    if program is None:
        raise TilewrightError(2, "the tilewright program was not found\n  fix: build it (make), or set TILEWRIGHT_PROGRAM")
    with tempfile.TemporaryDirectory() as folder:
        if source is not None:
            file = os.path.join(folder, os.path.basename(file))
            with open(file, "w", encoding="utf-8") as f:
                f.write(source)
        words = [program, "check", file, "--json"]
        words += ["--kernel", kernel] if kernel else []
        words += [w for n, v in constants.items() for w in ("--set", f"{n}={v}")]
        words += [w for name, value in (("--search", search), ("--audit", audit)) if value is not None for w in (name, str(value))]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
    try:
        data = json.loads(ran.stdout)
        return CheckResult(data["verdict"], data["text"], data)
    except (ValueError, KeyError):
        raise TilewrightError(1, (ran.stderr or ran.stdout).strip()) from None
