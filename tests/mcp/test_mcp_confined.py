"""What a client of the MCP server cannot do: run programs, read files elsewhere, spend without bounds."""
import json
import os
import pathlib
import subprocess
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")
VECTOR_ADD = (SOURCE / "kernels/vector_add.py").read_text()
TASK = {"computes": "Y[n] = X[n] * 2", "sizes": {"N": 4096}, "steps": 1}


class Session:
    def __init__(self, folder, *words, **more):
        environment = {**os.environ, "TILEWRIGHT_STATE": str(folder / "state"), "TILEWRIGHT_HIDE": "nvrtc", **more}
        self.server = subprocess.Popen([PROGRAM, "mcp", *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment)
        self.number = 0

    def call(self, tool, arguments):
        self.number += 1
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}) + "\n")
        self.server.stdin.flush()
        while True:
            answer = json.loads(self.server.stdout.readline())
            if answer.get("id") == self.number:
                result = answer["result"]
                return result["isError"], "\n".join(part["text"] for part in result["content"]), result.get("structuredContent")

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.server.stdin.close()
        self.server.wait(timeout=60)


def test_no_program_is_started(tmp_path):
    with Session(tmp_path) as session:
        failed, text, _ = session.call("optimize_start", {**TASK, "proposer": "command:touch executed"})
        assert failed and "--allow-command" in text
        for odd in ("Command:touch executed", "nobody", "openai", ""):
            assert session.call("optimize_start", {**TASK, "proposer": odd})[0], odd
    assert not (tmp_path / "executed").exists()


def test_programs_run_where_they_are_allowed(tmp_path):
    (tmp_path / "kernel.py").write_text("no kernel")
    with Session(tmp_path, "--allow-command") as session:
        failed, text, facts = session.call("optimize_start", {**TASK, "seconds": 20, "proposer": f"command:cat {tmp_path}/kernel.py"})
        assert not failed, text
        for _ in range(300):
            failed, text, status = session.call("optimize_status", {"job": facts["job"]})
            if status["over"]:
                break
            time.sleep(0.2)
        assert status["over"] and "proposer command:cat" in text, text


def test_models_need_bounds(tmp_path):
    with Session(tmp_path) as session:
        for bounds in ({}, {"tokens": 1000}, {"seconds": 10}, {"seconds": 10, "tokens": 0}, {"seconds": 10, "dollars": -1}, {"seconds": 10, "dollars": 1e300}, {"seconds": 10, "tokens": 10**18}):
            failed, text, _ = session.call("optimize_start", {**TASK, "proposer": "anthropic:m", **bounds})
            assert failed, (bounds, text)


def test_files_lie_in_the_root(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir(), outside.mkdir()
    (root / "below").mkdir()
    for place in (root / "kernel.py", root / "below" / "kernel.py", outside / "kernel.py"):
        place.write_text(VECTOR_ADD)
    (root / "link.py").symlink_to(outside / "kernel.py")
    (root / "folder").symlink_to(outside)
    (root / "inner.py").symlink_to(root / "below" / "kernel.py")
    (outside / "task.toml").write_text("name = 'x'")
    with Session(root) as session:
        for file in ("kernel.py", "below/kernel.py", "below/../kernel.py", str(root / "kernel.py"), "inner.py"):
            failed, text, _ = session.call("check", {"file": file})
            assert not failed, (file, text)
        words = set()
        for file in ("/etc/passwd", "../outside/kernel.py", "link.py", "folder/kernel.py", "below/../../outside/kernel.py", str(outside / "kernel.py"), "absent.py", "/absent"):
            failed, text, _ = session.call("check", {"file": file})
            assert failed and "root:" not in text, (file, text)
            words.add(text.replace(f"'{file}'", ""))
        assert len(words) == 1, "whether a file exists elsewhere is not told: " + str(words)
        for tool, arguments in (("optimize_start", {"task_file": str(outside / "task.toml")}), ("submit", {"task_file": "../outside/task.toml", "source": VECTOR_ADD}),
                                ("bench", {"source": VECTOR_ADD, "sizes": {"N": 64}, "against": str(outside / "kernel.py") + "@B=64"}), ("ir", {"file": "link.py"}), ("emit", {"file": "link.py"})):
            failed, text, _ = session.call(tool, arguments)
            assert failed and "files elsewhere are not read" in text, (tool, text)
    with Session(root, "--root", outside) as session:
        assert not session.call("check", {"file": "kernel.py"})[0]
        assert session.call("check", {"file": str(root / "kernel.py")})[0]


def test_a_root_that_is_none(tmp_path):
    done = subprocess.run([PROGRAM, "mcp", "--root", str(tmp_path / "absent")], input="", capture_output=True, text=True)
    assert done.returncode == 2 and "--root" in done.stderr


def test_tools_write_nothing_outside_and_see_no_keys(tmp_path):
    """The children of the server: their environment holds no keys."""
    with Session(tmp_path, TILEWRIGHT_PROGRAM=str(tmp_path / "spy"), OPENAI_API_KEY="sk-1") as session:
        spy = tmp_path / "spy"
        spy.write_text("#!/bin/sh\nenv | grep -c API_KEY\n(echo x > " + str(tmp_path / "written") + ") 2>/dev/null; exit 0\n")
        spy.chmod(0o755)
        failed, text, _ = session.call("check", {"source": VECTOR_ADD})
        assert text.strip() == "0", text
    doctor = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True).stdout
    if "present  box: writes" in doctor:
        assert not (tmp_path / "written").exists()
