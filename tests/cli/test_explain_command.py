"""`tilewright explain` as a user meets it: output and exit status."""
import json
import os
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def explain(*words):
    return subprocess.run([PROGRAM, "explain", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("spelling", ["TW0007", "tw0007", "7", "unterminated_string"])
def test_a_code_is_found_by_any_spelling(spelling):
    done = explain(spelling)
    assert done.returncode == 0
    assert done.stdout.startswith("TW0007 unterminated_string\n")
    assert "Wrong:" in done.stdout and "Right:" in done.stdout


def test_json_has_the_same_facts():
    entry = json.loads(explain("TW0007", "--json").stdout)
    assert entry["code"] == "TW0007" and entry["kind"] == "user" and entry["name"] == "unterminated_string"
    assert entry["meaning"] and entry["explanation"] and entry["wrong"] and entry["fix"]


def test_without_a_code_all_are_listed():
    codes = [entry["code"] for entry in json.loads(explain("--json").stdout)["codes"]]
    assert codes == sorted(set(codes)) and "TW0507" in codes and "TW9001" in codes
    lines = explain().stdout.splitlines()
    assert [line.split()[0] for line in lines] == codes


def test_an_unknown_code_names_the_nearest():
    done = explain("unterminated_strin")
    assert done.returncode == 2 and "TW0007" in done.stderr and not done.stdout
    done = explain("unterminated_strin", "--json")
    assert done.returncode == 2 and json.loads(done.stdout)["nearest"]["code"] == "TW0007"
    assert explain("\udcff\udcfe").returncode == 2
    assert explain("\udcff\udcfe", "--json").returncode == 2


def test_internal_errors_say_how_to_report_them():
    assert "report it" in explain("TW9001").stdout
