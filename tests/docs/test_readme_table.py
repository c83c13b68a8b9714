"""The tables of the documentation are what scripts/readme_table.py makes of the recorded results."""
import json
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import readme_table  # noqa: E402


def test_no_table_is_stale():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "readme_table.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_number_is_noticed():
    with open(os.path.join(ROOT, "README.md")) as f:
        text = f.read()
    body = re.search(r"<!-- probes:begin -->\n(.*?)<!-- probes:end -->", text, re.S).group(1)
    changed = text.replace(body, re.sub(r"\d", "7", body, count=1) if not body.startswith("7") else "0" + body)
    assert changed != text and readme_table.rewritten(changed) != changed


def test_every_marker_has_a_table_and_an_end():
    for page in readme_table.PAGES:
        with open(os.path.join(ROOT, page)) as f:
            text = f.read()
        begins, ends = re.findall(r"<!-- (\w+):begin -->", text), re.findall(r"<!-- (\w+):end -->", text)
        assert begins == ends and set(begins) <= set(readme_table.TABLES), page


def test_measured_cases_find_a_group():
    rows = [dict(case="gemm bf16 TN 2048x2048x2048", family="gemm"), dict(case="gemm bf16 TN 1000x3000x777", family="gemm"),
            dict(case="gemm bf16 TN 16x8192x8192 (dependent launch)", family="gemm"), dict(case="attention d64 causal S2048", family="attention"),
            dict(case="grouped bf16 E8 T64 k2 4096->14336 routed gathered", family="grouped"), dict(case="softmax_bf16_16384x4096", family="memory")]
    assert [readme_table.workload(r) for r in rows] == [
        "GEMM bf16", "GEMM bf16, rows that TMA cannot read or write", "GEMM bf16, 1 to 128 rows, dependent launch",
        "attention forward bf16, head dimension 64, causal", "grouped GEMM bf16, routed, rows gathered by index", "softmax"]


def test_every_recorded_suite_has_its_lines():
    suites = {n[:-5] for n in os.listdir(os.path.join(ROOT, "bench", "suites")) if n.endswith(".json")}
    assert set(readme_table.SUITES) == suites
    summary = readme_table.suite_summary()
    for name in suites:
        data = readme_table.read(f"bench/results/h200/{name}.json")
        measured = [r for r in (data or {"cases": []})["cases"] if r.get("ratio")]
        rows = [line.split(" | ") for line in summary.split("\n") if line.startswith(f"| {name} |")]
        own = [r for r in rows if not r[1].startswith("the faster of")]
        assert sum(int(r[3]) for r in own) == len(measured), name   # no case is left out, none counted twice
        for r in own:
            worst = min(m["ratio"] for m in measured if m["peer"] == r[1] and readme_table.misaligned(m) == (r[2] == "misaligned"))
            assert r[6].startswith(f"{worst:.3f} ("), r


def case(file, sizes, **constants):
    return {"case": "a case", "file": f"kernels/{file}.py", "sizes": sizes, "constants": constants}


@pytest.mark.parametrize("made, wanted", [
    (case("gemm_sm90", {"M": 1000, "N": 3000, "K": 777}), True),                  # rows of A and B
    (case("gemm_sm90", {"M": 4095, "N": 4097, "K": 4104}), True),                 # rows of C
    (case("gemm_sm90", {"M": 4095, "N": 4096, "K": 4104}), False),                # an odd number of rows moves none
    (case("transpose_sm90", {"M": 4095, "N": 8192}, T="bf16"), True),             # rows of the output are columns of the input
    (case("transpose_sm90", {"M": 4096, "N": 8192}, T="bf16"), False),
    (case("softmax_sm90", {"M": 64, "N": 4100}, T="f32"), False),                 # the same length, by type
    (case("softmax_sm90", {"M": 64, "N": 4100}, T="bf16"), True),
    (case("activations", {"N": 16383 * 4095}, T="f32"), True),                    # a vector has no rows: its length
    (case("activations", {"M": 64, "H": 100}, T="bf16"), True),                   # 2 * H is aligned, H is not
    (case("attention_sm90", {"B": 1, "HK": 2, "S": 3000, "T": 3000}, D=128, G=1, DT="bf16"), False),
])
def test_misaligned_is_told_by_the_rows_of_the_operands(made, wanted):
    assert readme_table.misaligned(made) == wanted


def test_a_case_of_no_known_kernel_is_an_error():
    with pytest.raises(ValueError):
        readme_table.misaligned(case("gemm_sm90", {"Q": 4}))


def test_the_faster_of_two_rivals():
    rows = [dict(case="a", peer="cuDNN (torch SDPA)", ratio=1.2), dict(case="a", peer="FlashAttention-3", ratio=1.1), dict(case="b", peer="cuDNN (torch SDPA)", ratio=0.9),
            dict(case="a", peer="a stream of as many bytes", ratio=0.5), dict(case="c", peer="cuDNN (torch SDPA)", ratio=1.3), dict(case="c", peer="FlashAttention-3", ratio=None)]
    label, best = readme_table.fastest(rows)
    assert label == "the faster of cuDNN (torch SDPA) and FlashAttention-3" and [(r["case"], r["ratio"]) for r in best] == [("a", 1.1)]


def test_every_shipped_kernel_file_has_a_verdict():
    recorded = {k["file"] for k in readme_table.read(readme_table.VERDICTS)["kernels"]}
    assert recorded == {"kernels/" + n for n in os.listdir(os.path.join(ROOT, "kernels")) if n.endswith(".py") and not n.endswith("_parts.py")}


@pytest.mark.skipif(not PROGRAM, reason="the program is not built")
@pytest.mark.parametrize("name", ["vector_add", "bias_gelu", "softmax", "layernorm", "rmsnorm", "transpose", "gemm_sm80"])
def test_recorded_verdicts_are_what_check_says(name):
    """The quick files here; scripts/readme_table.py --verdicts records all of them."""
    file = f"kernels/{name}.py"
    done = subprocess.run([PROGRAM, "check", file, "--json"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    now = [(k["kernel"], k["line"], k["verdict"]) for k in json.loads(done.stdout)["kernels"]]
    recorded = [(k["kernel"], k["line"], k["verdict"]) for k in readme_table.read(readme_table.VERDICTS)["kernels"] if k["file"] == file]
    assert now == recorded


def test_records_follow_their_files():
    """A figure that changes in a record changes its row: nothing of the table is typed."""
    rows = {r[2]: r[1] for r in readme_table.records_table.rows(readme_table.read)}
    assert len(rows) == len(readme_table.records_table.RECORDS)

    def halved(path):
        data = readme_table.read(path)
        for r in data["cases"] if path.endswith(("cute.json", "gemm_grid.json")) else []:
            if r.get("ratio"):
                r["ratio"] /= 2
        return data

    changed = {r[2]: r[1] for r in readme_table.records_table.rows(halved)}
    assert {name for name in rows if rows[name] != changed[name]} == {"cute.json", "gemm_grid.json"}
