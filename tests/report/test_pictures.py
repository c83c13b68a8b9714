"""The charts say what the results say: bars, dots and numbers against the JSON they were drawn from, and nothing above its roof."""
import json
import math
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
RESULTS = SOURCE / "bench" / "results"
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")
SVG = "{http://www.w3.org/2000/svg}"
SUITES = ("gemm", "attention", "grouped", "memory")
# Of NVIDIA's data sheet of the H200, dense: TFLOP/s by the type of the factors; f32 by three products of halves.
PEAKS = {"bf16": 989.5, "f16": 989.5, "e4m3": 1979, "e5m2": 1979, "i8": 1979, "u8": 1979, "tf32": 494.7, "f32": 989.5 / 3}
BANDWIDTH = 4.8  # TB/s


def draw(result, folder):
    file = folder / "result.json"
    file.write_text(json.dumps(result))
    done = subprocess.run([PROGRAM, "bench", "--draw", file, "--svg", folder / "drawn.svg"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return (folder / "drawn.svg").read_text()


def number(element, name):
    return float(element.get(name))


def fit(ticks, logarithmic):
    """From a place on an axis to its value, by the numbers that stand at it: [(place, value)]."""
    (a, va), (b, vb) = min(ticks), max(ticks)
    if logarithmic:
        return lambda at: math.exp(math.log(va) + (at - a) / (b - a) * (math.log(vb) - math.log(va)))
    return lambda at: va + (at - a) / (b - a) * (vb - va)


def as_number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


class Picture:
    def __init__(self, text):
        root = ElementTree.fromstring(text)
        plots = [g for g in root.iter(SVG + "g") if g.get("class") == "roofline"]
        self.plot = plots[0] if plots else None
        inside = set(self.plot.iter()) if plots else set()
        self.texts = [(number(t, "x"), number(t, "y"), t.text, t.get("text-anchor", "start")) for t in root.iter(SVG + "text") if t not in inside]
        self.bars = [e for e in root.iter(SVG + "rect") if e.get("data-ratio")]
        self.dots = [e for e in root.iter(SVG + "circle") if e.get("data-ratio") and e not in inside]
        self.height, self.width = number(root, "height"), number(root, "width")

    def ticks(self):
        return [(x, y, as_number(text)) for x, y, text, anchor in self.texts if anchor == "middle" and as_number(text) is not None]


def wrong_ratios(text, result):
    """Where a picture of ratios says something else than the result."""
    picture, out = Picture(text), []
    rows = {(c["case"], c["peer"]): c for c in result["cases"] if c.get("ratio") is not None}
    shown = []
    for mark in picture.bars + picture.dots:
        name, peer, said = re.fullmatch(r"(.*), against (.*): ([\d.]+) \[[\d.]+, [\d.]+\]", mark.find(SVG + "title").text).groups()
        row = rows.get((name, peer))
        if row is None:
            out.append(f"{name}, {peer}: not in the result")
            continue
        shown.append((name, peer))
        ratio = row["ratio"]
        if abs(float(said) - ratio) > 0.00051:
            out.append(f"{name}: says {said}, is {ratio}")
        if mark.tag == SVG + "rect":
            x0, y = number(mark, "x"), number(mark, "y")
            axis = [(x, v) for x, _, v in picture.ticks() if abs(x - x0) < 0.2 or (v > 0 and x0 < x < x0 + 500)]
            end = next(x for x, v in axis if v == 0)
            axis = [(x, v) for x, v in axis if x >= end and x <= min([x for x, v in axis if v == 0 and x > end + 1], default=1e9)]
            most = max(v for _, v in axis)
            drawn = fit(axis, False)(x0 + number(mark, "width"))
            if abs(drawn - min(ratio, most)) > 0.01:
                out.append(f"{name}: the bar ends at {drawn:.3f}, the ratio is {ratio:.3f}")
            beside = [t for x, ty, t, anchor in picture.texts if anchor == "end" and abs(ty - (y + 10)) < 0.6 and x0 < x < x0 + 520]
            if not beside or abs(float(beside[0].split()[-1]) - ratio) > 0.0051:
                out.append(f"{name}: {beside} stands beside it, the ratio is {ratio:.3f}")
            label = [t for x, ty, t, anchor in picture.texts if anchor == "end" and abs(ty - (y + 10)) < 0.6 and abs(x - (x0 - 6)) < 0.6]
            if not label or not name.startswith(label[0].removesuffix("..")):
                out.append(f"{name}: is labelled {label}")
        else:
            x, y = number(mark, "cx"), number(mark, "cy")
            half = picture.width / 2
            axis = [(tx, ty, v) for tx, ty, v in picture.ticks() if ty < y and (tx < half) == (x < half)]
            last = max(ty for _, ty, _ in axis)
            drawn = fit([(tx, v) for tx, ty, v in axis if ty == last], True)(x)
            if abs(drawn / ratio - 1) > 0.01 and 0.05 < ratio < 20:
                out.append(f"{name}: the dot is at {drawn:.3f}, the ratio is {ratio:.3f}")
    if sorted(shown) != sorted(rows):
        out.append(f"{len(shown)} of {len(rows)} rows are drawn")
    return out


def wrong_places(text, result):
    """Where a point of the roofline is not where its work and its time put it, or is above a roof that is drawn."""
    picture, out = Picture(text), []
    texts = [(number(t, "x"), number(t, "y"), t.text, t.get("text-anchor")) for t in picture.plot.iter(SVG + "text")]
    across = fit([(x, as_number(t)) for x, _, t, anchor in texts if anchor == "middle" and as_number(t) is not None], True)
    # The label's base line is 4 below its grid line.
    up = fit([(y - 4, as_number(t)) for _, y, t, anchor in texts if anchor == "end" and as_number(t) is not None], True)
    wanted = {}
    for c in result["cases"]:
        if "work" in c and "ours_us" in c and c.get("l2") != "warm":
            wanted.setdefault(c["case"], []).append((c["work"]["operations"] / c["work"]["bytes"], c["work"]["operations"] / c["ours_us"] * 1e-6))
    roofs = [as_number(t.split(": ")[1]) for _, _, t, _ in texts if ": " in t]
    for dot in picture.plot.iter(SVG + "circle"):
        name = dot.find(SVG + "title").text.split(":")[0]
        place = across(number(dot, "cx")), up(number(dot, "cy"))
        if not any(abs(place[0] / i - 1) < 0.02 and abs(place[1] / f - 1) < 0.02 for i, f in wanted.get(name, [])):
            out.append(f"{name}: drawn at {place}, is {wanted.get(name)}")
        if place[1] > max(roofs) * 1.01 or place[1] > place[0] * BANDWIDTH * 1.02:
            out.append(f"{name}: {place} is above the roof")
    if not any(t == "4.8 TB/s" for _, _, t, _ in texts):
        out.append("the bandwidth is not said")
    return out


def above_the_roof(result):
    out = []
    for c in result["cases"]:
        if "work" not in c or "ours_us" not in c:
            continue
        work, us = c["work"], c["ours_us"]
        tflops, tbytes = work["operations"] / us * 1e-6, work["bytes"] / us * 1e-6
        peak = PEAKS[work["unit"]] if work["matrix"] else 67
        if tflops > peak:
            out.append(f"{c['case']}: {tflops:.0f} TFLOP/s of {work['unit']}, of which there are {peak:.0f}")
        if tbytes > BANDWIDTH and c.get("l2") != "warm":
            out.append(f"{c['case']}: {tbytes:.2f} TB/s")
        if c.get("roofline", {}).get("fraction", 0) > 1 and c.get("l2") != "warm":
            out.append(f"{c['case']}: {100 * c['roofline']['fraction']:.0f}% of the roofline")
    return out


def with_work():
    for file in sorted((RESULTS / "h200").glob("*.json")):
        result = json.loads(file.read_text())
        cases = result.get("cases") if isinstance(result, dict) else None
        if isinstance(cases, list) and any("work" in c for c in cases if isinstance(c, dict)):
            yield file, result


def test_no_recorded_figure_is_above_its_roof():
    files = list(with_work())
    assert len(files) >= 10 and sum(len(r["cases"]) for _, r in files) > 500
    assert [f"{file.name}: {said}" for file, result in files for said in above_the_roof(result)] == []


def test_a_planted_figure_above_its_roof_is_found():
    result = json.loads((RESULTS / "h200" / "gemm.json").read_text())
    result["cases"][0]["work"]["operations"] *= 4
    assert len(above_the_roof(result)) == 1


def test_counts_are_those_of_the_kernels(tmp_path):
    """`bench --recount` of a committed result changes nothing: its bytes and operations are what the kernels ask for today."""
    for name in ("gemm", "memory", "precision", "training"):
        file = RESULTS / "h200" / f"{name}.json"
        done = subprocess.run([PROGRAM, "bench", "--recount", file, "--json", tmp_path / "counted.json"], capture_output=True, text=True, timeout=120, cwd=SOURCE)
        assert done.returncode == 0, done.stderr
        before, after = (json.loads(f.read_text())["cases"] for f in (file, tmp_path / "counted.json"))
        assert [c["case"] for c, d in zip(before, after) if c["work"] != d["work"]] == [], f"tilewright bench --recount bench/results/h200/{name}.json --json bench/results/h200/{name}.json"


@pytest.mark.parametrize("suite", SUITES)
def test_a_picture_says_what_its_result_says(suite):
    text, result = (SOURCE / "docs" / "images" / f"{suite}.svg").read_text(), json.loads((RESULTS / "h200" / f"{suite}.json").read_text())
    assert wrong_ratios(text, result) == []
    assert wrong_places(text, result) == []
    assert Picture(text).height <= 1000, "a reader takes it in without scrolling far"


def test_planted_values_are_found():
    result = json.loads((RESULTS / "h200" / "gemm.json").read_text())
    text = (SOURCE / "docs" / "images" / "gemm.svg").read_text()
    width = re.search(r'width="([\d.]+)" height="11"', text)[1]
    for planted in (text.replace(f'width="{width}" height="11"', f'width="{float(width) * 0.9:.1f}" height="11"', 1), re.sub(r">1\.12</text>", ">1.21</text>", text, count=1)):
        assert planted != text and len(wrong_ratios(planted, result)) == 1
    dot = re.search(r'cy="([\d.]+)" r="4" data-tflops', text)[1]
    assert len(wrong_places(text.replace(f'cy="{dot}" r="4" data-tflops', f'cy="{float(dot) - 20:.1f}" r="4" data-tflops', 1), result)) >= 1
    many = (SOURCE / "docs" / "images" / "memory.svg").read_text()
    result = json.loads((RESULTS / "h200" / "memory.json").read_text())
    dot = re.search(r'cx="([\d.]+)" cy="[\d.]+" r="4" data-ratio', many)[1]
    assert len(wrong_ratios(many.replace(f'cx="{dot}"', f'cx="{float(dot) + 15:.1f}"', 1), result)) == 1


def test_the_scaling_picture_says_what_its_result_says():
    result = json.loads((RESULTS / "clusters" / "scaling.json").read_text())
    root = ElementTree.fromstring((SOURCE / "docs" / "images" / "scaling.svg").read_text())
    texts = [(number(t, "x"), number(t, "y"), t.text, t.get("text-anchor")) for t in root.iter(SVG + "text")]
    up = fit([(y - 4, float(t[:-1])) for _, y, t, anchor in texts if anchor == "end" and t.endswith("%")], False)
    across = fit([(x, float(t)) for x, _, t, anchor in texts if anchor == "middle" and t.isdigit()], True)
    points = [(p["workers"], 100 * p["efficiency"]) for c in result["curves"] for p in c["points"]]
    dots = [(across(number(c, "cx")), up(number(c, "cy"))) for c in root.iter(SVG + "circle")]
    assert len(dots) == len(points)
    for (workers, percent), (x, y) in zip(points, dots):
        assert abs(x / workers - 1) < 0.02 and abs(y - percent) < 0.5


def test_many_rows_of_long_names_are_drawn_whole(tmp_path):
    row = {"ours_us": 10.0, "ratio": 1.1, "interval": [1.0, 1.2], "work": {"bytes": 1e6, "operations": 1e6, "matrix": False, "unit": "f32"}}
    result = {"suite": "s", "versions": {"gpu": "NVIDIA H200"}, "cases": [{**row, "case": f"a rather long name of a case, number {i:03}, with more behind it", "peer": f"peer {i % 3}", "ratio": 0.5 + i / 50} for i in range(60)]}
    assert wrong_ratios(draw(result, tmp_path), result) == []
    result["cases"] += [{**row, "case": f"other{'x' * 40} {i}", "peer": "peer 1", "ratio": 0.2 + i / 10} for i in range(60)]
    assert wrong_ratios(draw(result, tmp_path), result) == []
    result["versions"] = {}
    assert wrong_ratios(draw(result, tmp_path), result) == []
