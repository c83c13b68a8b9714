"""summarize_tests.py FOLDER: one line per test program, then what failed and what was skipped and why.

Reads the JUnit files that GoogleTest and pytest write. ctest has already decided the exit status; this is for the reader.
"""
import collections
import os
import sys
import xml.etree.ElementTree as ElementTree


def cases(path):
    """(name, outcome, words) of every test case in one file."""
    root = ElementTree.parse(path).getroot()
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}".strip(".")
        if "DISABLED_" in name:
            continue  # helpers that other tests start in a process of their own
        problems = case.findall("failure") + case.findall("error")
        skipped = case.find("skipped")
        if problems:
            yield name, "failed", (problems[0].get("message") or problems[0].text or "").strip()
        elif skipped is not None or case.get("status") == "notrun":
            words = "" if skipped is None else (skipped.get("message") or skipped.text or "").strip()
            yield name, "skipped", words
        else:
            yield name, "passed", ""


def main():
    folder = sys.argv[1]
    files = sorted(f for f in os.listdir(folder) if f.endswith(".xml")) if os.path.isdir(folder) else []
    totals = collections.Counter()
    failed, skipped = [], collections.defaultdict(list)
    print("\nTest cases")
    for file in files:
        counts = collections.Counter()
        try:
            for name, outcome, words in cases(os.path.join(folder, file)):
                counts[outcome] += 1
                if outcome == "failed":
                    failed.append((name, words))
                elif outcome == "skipped":
                    # GoogleTest puts file and line first; the reason is the last line.
                    skipped[words.splitlines()[-1] if words else "no reason given"].append(name)
        except ElementTree.ParseError as error:
            failed.append((file, f"unreadable result file: {error}"))
        totals.update(counts)
        print(f"  {file[:-4]:<28} {counts['passed']:>6} passed {counts['failed']:>4} failed {counts['skipped']:>4} skipped")
    print(f"  {'all':<28} {totals['passed']:>6} passed {totals['failed']:>4} failed {totals['skipped']:>4} skipped")
    for reason, names in skipped.items():
        print(f"skipped, {reason}:")
        for name in names[:10]:
            print(f"  {name}")
        if len(names) > 10:
            print(f"  and {len(names) - 10} more")
    for name, words in failed:
        print(f"FAILED {name}: {words.splitlines()[0] if words else ''}")


main()
