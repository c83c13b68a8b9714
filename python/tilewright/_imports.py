"""Imports between kernel files in plain Python, as the language has them: a module NAME_parts that Python finds nowhere else is looked for among the kernels
of the package."""
import importlib.abc
import importlib.util
import os
import sys

from . import _paths


class _KernelParts(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if path is not None or not fullname.isidentifier() or not fullname.endswith("_parts"):
            return None
        file = os.path.join(_paths.kernels(), fullname + ".py")
        return importlib.util.spec_from_file_location(fullname, file) if os.path.isfile(file) else None


if not any(type(f).__name__ == "_KernelParts" for f in sys.meta_path):
    sys.meta_path.append(_KernelParts())  # last: whatever Python finds by itself comes first
