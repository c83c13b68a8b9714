#!/usr/bin/env python3
"""Draws docs/images/flow.svg: the way of a kernel through the system. `python3 scripts/draw_flow.py`, then commit the picture."""
import os

W, H = 132, 50
BOXES = {  # name: (x, y, label, second line, filled)
    "file": (20, 120, "kernel file", "Python subset", False),
    "lower": (190, 120, "lang, lower", "named steps", False),
    "ir": (360, 120, "last tile IR", "nothing implicit", True),
    "verify": (560, 20, "verify", "proof, all sizes", False),
    "emulate": (560, 120, "emulate", "instance, any order", False),
    "codegen": (560, 220, "codegen", "prints the IR", False),
    "diagnose": (750, 70, "diagnose", "replayed, shrunk", False),
    "runtime": (750, 220, "runtime", "NVRTC, driver", False),
    "target": (360, 300, "target, layout", "instructions as data", True),
}
ARROWS = [("file", "lower"), ("lower", "ir"), ("ir", "verify"), ("ir", "emulate"), ("ir", "codegen"), ("verify", "diagnose"),
          ("emulate", "diagnose"), ("codegen", "runtime")]
TEXT = [(750, 142, "counterexample: thread, element, line"), (750, 290, "GPU: timed beside its peer"),
        (505, 322, "shared by lower, verify, emulate and codegen;"), (505, 340, "every row probed on an H200")]


def main():
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 370" font-family="sans-serif" font-size="14">',
           '<rect width="1000" height="370" fill="#ffffff"/>',
           '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
           '<path d="M0 0 L8 4 L0 8 z" fill="#4a5568"/></marker></defs>']
    for a, b in ARROWS:
        xa, ya, xb, yb = BOXES[a][0] + W, BOXES[a][1] + H / 2, BOXES[b][0], BOXES[b][1] + H / 2
        mid = (xa + xb) / 2
        out.append(f'<path d="M{xa} {ya:g} C{mid:g} {ya:g} {mid:g} {yb:g} {xb - 2} {yb:g}" fill="none" stroke="#4a5568" stroke-width="1.5" marker-end="url(#tip)"/>')
    x, y = BOXES["target"][0] + W / 2, BOXES["target"][1]
    out.append(f'<path d="M{x:g} {y} L{x:g} {BOXES["ir"][1] + H + 4}" stroke="#4a5568" stroke-width="1.5" stroke-dasharray="4 3" fill="none" marker-end="url(#tip)"/>')
    for x, y, label, second, filled in BOXES.values():
        out.append(f'<rect x="{x}" y="{y}" width="{W}" height="{H}" rx="6" fill="{"#e6f0fa" if filled else "#f7fafc"}" stroke="#2b6cb0"/>')
        out.append(f'<text x="{x + W / 2:g}" y="{y + 21}" text-anchor="middle" font-weight="bold" fill="#1a202c">{label}</text>')
        out.append(f'<text x="{x + W / 2:g}" y="{y + 39}" text-anchor="middle" font-size="12" fill="#4a5568">{second}</text>')
    for x, y, words in TEXT:
        out.append(f'<text x="{x}" y="{y}" font-size="12" fill="#4a5568">{words}</text>')
    out.append("</svg>\n")
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "images", "flow.svg")
    with open(path, "w") as f:
        f.write("\n".join(out))


if __name__ == "__main__":
    main()
