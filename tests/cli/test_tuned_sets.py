"""The constants that the tuned data and the measured suites name: what is launched with them is proved, not only what the defaults give."""
import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def every_set():
    """{(file, kernel, constants as text)}, of the tuned data and of the suites."""
    found = set()
    for path in sorted((SOURCE / "kernels").glob("*.tuned.json")):
        tuned = json.loads(path.read_text())
        found |= {("kernels/" + tuned["file"], e["kernel"], json.dumps(e["constants"], sort_keys=True)) for e in tuned["entries"]}
    for path in sorted((SOURCE / "bench" / "suites").glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            if case.get("file", "").startswith("kernels/") and case.get("kernel"):
                found.add((case["file"], case["kernel"], json.dumps(case.get("constants", {}), sort_keys=True)))
    return sorted(found)


# All of attention, whose loops change with its constants; of the others one in four.
SETS = [s for i, s in enumerate(every_set()) if "attention_sm90" in s[0] or i % 4 == 0]


def test_there_are_sets():
    assert len(SETS) > 30


@pytest.mark.parametrize("file, kernel, constants", SETS, ids=lambda x: pathlib.Path(x).stem if x.endswith(".py") else x)
def test_it_is_proved(file, kernel, constants):
    words = [f"{name}={value}" for name, value in json.loads(constants).items()]
    command = [PROGRAM, "check", SOURCE / file, "--kernel", kernel, "--audit", "0", "--search", "0"] + (["--set", ",".join(words)] if words else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[:4000] + done.stderr[:1000]
