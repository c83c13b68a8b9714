#!/usr/bin/env python3
"""tuned_from_results.py SUITE FILE...: the tuned data of kernel files from recorded results of a suite (bench/results/h200/SUITE.json).

The constants that a suite's cases name were found by tuning; here they become what a launch without constants takes (src/runtime/tuned.h). Data that a file has
already is kept; a case replaces an entry of the same kernel, sizes and constants. Needs libtilewright.so, for the digest of a file.
"""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as f:
        return json.load(f)


def main():
    import ctypes

    from tilewright._library import check, library

    suite, files = sys.argv[1], sys.argv[2:]
    cases = {c["case"]: c for c in read("bench", "suites", suite + ".json")["cases"]}
    results = read("bench", "results", "h200", suite + ".json")
    gpu = results["versions"]["gpu"]
    for file in files:
        path = os.path.join(ROOT, file)
        handle = ctypes.c_void_p()
        check(library().tw_module_load(json.dumps({"path": path, "tuned": False}).encode(), ctypes.byref(handle)))
        digest = json.loads(library().tw_module_describe(handle).decode())["program"]
        tuned = os.path.splitext(path)[0] + ".tuned.json"
        entries = {}
        if os.path.exists(tuned):
            with open(tuned, encoding="utf-8") as f:
                known = json.load(f)
            if known["program"] == digest:
                entries = {key_of(e): e for e in known["entries"]}
        for r in results["cases"]:
            if r["file"] != file or r.get("status") != "right" or not isinstance(r.get("ours_us"), (int, float)):
                continue
            entry = {"constants": r["constants"], "default_us": round(r["ours_us"], 3), "gpu": gpu, "kernel": cases[r["case"]]["kernel"], "sizes": r["sizes"], "us": round(r["ours_us"], 3)}
            entries.setdefault(key_of(entry), entry)
        lines = ",\n".join("  " + json.dumps(e, sort_keys=True, separators=(",", ":")) for e in entries.values())
        with open(tuned, "w", encoding="utf-8") as f:
            f.write(f'{{\n "schema": "tilewright tuned 2",\n "file": {json.dumps(os.path.basename(file))},\n "program": "{digest}",\n "entries": [\n{lines}\n ]\n}}\n')
        print(f"{os.path.relpath(tuned, ROOT)}: {len(entries)} entries")


def key_of(entry):
    return json.dumps([entry["kernel"], entry["gpu"], entry["sizes"], entry["constants"]], sort_keys=True)


if __name__ == "__main__":
    main()
