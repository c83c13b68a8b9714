#!/usr/bin/env python3
"""The largest functions and files of src/. With --write, the table in HACKING.md.

A function is a definition whose body opens at the end of a line and closes with a brace of the same indentation; lambdas and
classes count as part of what they stand in.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STARTS = re.compile(r"^( {0,4})(?!(?:namespace|struct|class|enum|union|if|for|while|switch|else|do|try|return|static_assert|using|TEST|#|//)\b)[A-Za-z_~\[].*\(")


def signature_end(lines, at):
    """The line on which the body opens; none for what is no definition. A signature may take several lines."""
    depth = 0
    for line in range(at, min(at + 12, len(lines))):
        text = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//.*', "", lines[line])
        depth += text.count("(") - text.count(")")
        if depth == 0 and text.rstrip().endswith("{"):
            return line
        if depth == 0 and (";" in text or text.rstrip().endswith("}")):
            return None
    return None


def functions(path):
    lines = path.read_text().splitlines()
    at = 0
    while at < len(lines):
        match = STARTS.match(lines[at])
        opens = signature_end(lines, at) if match else None
        if opens is not None:
            end = next((i for i in range(opens + 1, len(lines)) if lines[i] == match.group(1) + "}"), None)
            if end is not None:
                name = re.search(r"([\w:~]+|operator\S+)\(", lines[at])
                yield end - at + 1, name.group(1) if name else lines[at].strip(), at + 1
                at = end
        at += 1


def main():
    files, bodies = [], []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".cpp", ".h") or "codegen/cuda" in str(path):
            continue
        name = path.relative_to(ROOT)
        files.append((len(path.read_text().splitlines()), str(name)))
        bodies += [(length, f"`{function}` ({name}:{line})") for length, function, line in functions(path)]
    files.sort(reverse=True), bodies.sort(reverse=True)
    rows = ["| lines | function | lines | file |", "| --- | --- | --- | --- |"]
    for (length, function), (count, file) in zip(bodies[:10], files[:10]):
        rows.append(f"| {length} | {function} | {count} | {file} |")
    rows.append("")
    rows.append(f"{sum(length > 120 for length, _ in bodies)} functions have more than 120 lines, "
                f"{sum(count > 600 for count, _ in files)} files more than 600.")
    table = "\n".join(rows)
    if "--write" in sys.argv:
        page = ROOT / "HACKING.md"
        text = re.sub(r"(<!-- largest:begin -->\n).*?(<!-- largest:end -->)", lambda m: m.group(1) + table + "\n" + m.group(2),
                      page.read_text(), flags=re.S)
        page.write_text(text)
    print(table)
    if "--over" in sys.argv:
        print("\n".join(f"{length} {function}" for length, function in bodies if length > 120))


if __name__ == "__main__":
    main()
