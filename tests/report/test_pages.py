"""Pages and charts as a browser shows them, at a desktop's width and at a telephone's: no label is clipped or lies on another, and what they say is what the JSON
says that they were made from."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import browser  # noqa: E402

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
WIDE, NARROW = 1200, 390
RUNS = ("gemm", "softmax", "grouped_gemm", "attention_causal")
HINTS = "tests/diagnose/hints"
CHECKS = {"race": "examples/missing_barrier.py", "roles": f"{HINTS}/released_before_all_have_read.py", "deadlock": f"{HINTS}/ring_counts_two_arrivals.py", "bytes": f"{HINTS}/half_the_bytes_announced.py", "value": f"{HINTS}/columns_for_rows.py",
          "swizzle": f"{HINTS}/swizzle_forgotten_by_the_second_view.py", "proved": "kernels/vector_add.py"}
pytestmark = [pytest.mark.skipif(not PROGRAM, reason="the program is not built"), pytest.mark.skipif(not browser.CHROMIUM, reason="chromium is not installed")]


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=SOURCE, env={**os.environ, "TILEWRIGHT_HIDE": "driver"})


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Every page and picture, looked at once: {name: what the browser found}, and what they were made from."""
    folder, pages, made = tmp_path_factory.mktemp("pages"), [], {}
    for name in RUNS:
        done = run("show", SOURCE / "bench/results/agent" / f"{name}.json", "--html", folder / f"{name}.html")
        assert done.returncode == 0, done.stderr
        text = (folder / f"{name}.html").read_text()
        pages += [(f"run {name} {w}", text, w, None) for w in (WIDE, NARROW)] + [(f"run {name} cuda", text, WIDE, "tab-cuda"), (f"run {name} evidence", text, NARROW, "tab-evidence")]
        made[f"run {name}"] = json.loads((SOURCE / "bench/results/agent" / f"{name}.json").read_text())
    for name, file in CHECKS.items():
        done = run("check", SOURCE / file, "--html", folder / f"{name}.html", "--json")
        assert done.returncode in (0, 1, 3), done.stderr
        made[f"check {name}"] = json.loads(done.stdout)
        pages += [(f"check {name} {w}", (folder / f"{name}.html").read_text(), w, None) for w in (WIDE, NARROW)]
    for picture in sorted((SOURCE / "docs/images").glob("*.svg")):
        pages += [(f"picture {picture.stem} {w}", picture.read_text(), w, None) for w in (WIDE, NARROW)]
    # The test of the test: labels on each other, one outside of its picture, one under a lid, a page wider than its window.
    gemm = (SOURCE / "docs/images/gemm.svg").read_text()
    pages.append(("planted overlap", re.sub(r'(<text x="[\d.]+" y=")[\d.]+(" text-anchor="end">TN 2048\^3)', lambda m: m[1] + re.search(r'y="([\d.]+)" text-anchor="end">TN 1024\^3', gemm)[1] + m[2], gemm), WIDE, None))
    pages.append(("planted clip", gemm.replace("</svg>", '<text x="1030" y="40">beyond the edge</text></svg>'), WIDE, None))
    pages.append(("planted lid", '<!doctype html><div style="height: 10px; overflow: hidden">a line<br>and one under the lid</div>', WIDE, None))
    pages.append(("planted width", '<!doctype html><div style="width: 900px">a line <span style="position: absolute; left: 800px">far right</span></div>', NARROW, None))
    pages.append(("planted page overlap", '<!doctype html><p style="margin: 0">some words</p><p style="margin: -18px 0 0 0">other words</p>', WIDE, None))
    return browser.look(pages), made


def test_no_label_is_clipped_or_lies_on_another(seen):
    found, _ = seen
    assert {name: browser.problems(page)[:6] for name, page in found.items() if not name.startswith("planted") and browser.problems(page)} == {}


def test_what_fits_a_desktop_needs_no_scrolling_sideways(seen):
    found, _ = seen
    assert {name: page["scrolled"] for name, page in found.items() if name.endswith(str(WIDE)) and page["scrolled"]} == {}


def test_planted_labels_are_found(seen):
    found, _ = seen
    assert any("TN 1024^3" in said and "TN 2048^3" in said for said in browser.problems(found["planted overlap"]))
    assert any("beyond the edge" in said for said in browser.problems(found["planted clip"]))
    assert any("under the lid" in said for said in browser.problems(found["planted lid"]))
    assert any("far right" in said or "wider" in said for said in browser.problems(found["planted width"]))
    assert any("some words" in said and "other words" in said for said in browser.problems(found["planted page overlap"]))


def wrong_steps(page, run):
    """Where the table of a run's page differs from the run."""
    out = []
    table = next(t for t in page["tables"] if t[0][0] == "step")
    at = {name: i for i, name in enumerate(table[0])}
    if len(table) - 1 != len(run["steps"]):
        return [f"{len(table) - 1} rows, {len(run['steps'])} steps"]
    for cells, step in zip(table[1:], run["steps"]):
        def differs(column, value):
            if cells[at[column]] != value:
                out.append(f"step {step['number']}: {column} is {cells[at[column]]!r}, should be {value!r}")
        differs("step", str(step["number"]))
        differs("outcome", step["outcome"])
        differs("check", step["verdict"])
        us, gpu = step.get("microseconds"), step["evidence"].get("gpu", {})
        differs("time", f"{us:.1f} us" if us else "")
        if "ratio" in gpu:
            differs("over the best before, in turn", "{:.3f}x [{:.3f}, {:.3f}]".format(gpu["ratio"], *gpu["ratio_interval"]))
        else:
            differs("over the best before, in turn", "")
        differs("over the first", f"{step['speedup']:.2f}x" if step.get("speedup") else "")
        differs("roofline", f"{100 * step['roofline_share']:.0f}%" if step.get("roofline_share") is not None else "")
        if "slower" in cells[at["why"]]:
            out.append(f"step {step['number']}: a time beside the word slower")
    return out


@pytest.mark.parametrize("name", RUNS)
def test_a_run_says_what_its_journal_says(seen, name):
    found, made = seen
    page, run = found[f"run {name} {WIDE}"], made[f"run {name}"]
    assert wrong_steps(page, run) == []
    best = [s for s in run["steps"] if s["outcome"] == "accepted"][-1]
    assert f"{best['microseconds']:.1f} us" in page["text"]
    curve, roofline = page["svgs"][:2]
    for said in (f"ours {best['microseconds']:.1f} us" if best["microseconds"] < 100 else f"ours {best['microseconds']:.0f} us", "microseconds", "step"):
        assert said in curve, (said, curve)
    assert {"TFLOP/s", "operations per byte", "4.8 TB/s"} <= set(roofline) and sum(t.replace(",", "").replace(".", "").isdigit() for t in roofline) >= 6, roofline
    changed = json.loads(json.dumps(run))
    changed["steps"][1]["evidence"].setdefault("gpu", {}).update({"ratio": 1.234, "ratio_interval": [1.2, 1.3]})
    assert len(wrong_steps(page, changed)) == 1
    changed["steps"][2]["microseconds"] = 77777.7
    assert len(wrong_steps(page, changed)) == 2


def test_the_cuda_text_is_in_a_tab(seen):
    found, _ = seen
    page = found["run gemm cuda"]
    assert "__global__" in page["text"] and "tw_tile.cuh" in page["text"]
    assert "__global__" not in found[f"run gemm {WIDE}"]["text"]


def wrong_check(page, result):
    """Where a check's page differs from its result."""
    out, text = [], page["text"]
    def says(words, what):
        if str(words) not in text:
            out.append(f"{what}: {words!r} is not on the page")
    for kernel in result["kernels"]:
        proved = sum(a["status"] == "proved" for a in kernel["assertions"])
        if not any(row[:4] == [kernel["kernel"], str(kernel["line"]), kernel["verdict"], f"{proved} of {len(kernel['assertions'])} proved"] for t in page["tables"] for row in t):
            out.append(f"{kernel['kernel']}: its verdict is not in the table")
        c = kernel.get("counterexample")
        if not c:
            continue
        for field in ("code", "message", "sizes", "element"):
            says(c[field], field)
        if "missing" in c:
            says(c["missing"], "missing")
        for step in c["trace"]:
            says(f"line {step['place']['line']}", "a step's line")
            says(step["action"], "a step's action")
        for picture in ("layout", "picture"):
            if picture in c:
                cells = [[str(v) for v in row] for row in c[picture]["cells"]]
                if not any([row[1:] for row in t[1:]] == cells for t in page["tables"]):
                    out.append(f"{picture} differs")
    return out


def test_a_check_says_what_its_result_says(seen):
    found, made = seen
    names = [name for name in made if name.startswith("check ")]
    for name in names:
        for width in (WIDE, NARROW):
            assert wrong_check(found[f"{name} {width}"], made[name]) == [], name
    page, race = found[f"check race {WIDE}"], made["check race"]
    c = race["kernels"][0]["counterexample"]
    assert "The two accesses" in page["text"] and c["other"]["source"] in page["text"] and c["source"] in page["text"]
    assert "What happens" in page["text"] and c["layout"]["title"] in page["text"]
    changed = json.loads(json.dumps(race))
    changed["kernels"][0]["counterexample"]["layout"]["cells"][0][0] = "9999:9"
    changed["kernels"][0]["counterexample"]["element"] = "`other` byte 3"
    assert len(wrong_check(page, changed)) == 2
