"""The command line as a person meets it: suggestions, errors as JSON, files instead of output, completion, help with an example."""
import html
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def tilewright(*words, **environment):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120, cwd=SOURCE, env={**os.environ, **environment})


def commands():
    return [line.split()[0] for line in tilewright("--help").stdout.split("Subcommands:")[1].splitlines() if line.startswith("  ") and line[2] != " "] if PROGRAM else []


@pytest.mark.parametrize("words, meant", [(["chek", "x"], "did you mean check?"), (["optimise", "x"], "did you mean optimize?"), (["check", "--jsn", "x"], "did you mean --json?"),
                                          (["check", "kernels/softmax.py", "--kernel", "sofmax"], "did you mean softmax?"),
                                          (["emit", "kernels/vector_add.py", "--kernel", "vector_ad"], "did you mean vector_add?"),
                                          (["ir", "kernels/vector_add.py", "--kernel", "vectoradd"], "did you mean vector_add?")])
def test_did_you_mean(words, meant):
    done = tilewright(*words)
    assert done.returncode == 2 and meant in done.stderr, done.stderr


@pytest.mark.parametrize("words", [["check", "kernels/softmax.py", "--kernel", "no", "--json"], ["emit", "kernels/softmax.py", "--to", "nothing", "--json"], ["run", "kernels/softmax.py", "--json"],
                                   ["check", "--json"], ["explain", "TW9999", "--json"], ["ir", "kernels/vector_add.py", "--kernel", "no", "--json"]])
def test_errors_are_json_where_the_answer_would_be(words):
    done = tilewright(*words)
    error = json.loads(done.stdout)
    assert done.returncode == error["exit_code"] == 2 and error["verdict"] == "error" and error["message"], done.stdout
    assert list(error)[:2] == ["schema", "verdict"]


@pytest.mark.parametrize("command", commands())
def test_every_help_ends_with_an_example(command):
    assert "Example" in tilewright(command, "--help").stdout


def test_emit_writes_what_it_would_print(tmp_path):
    out = tmp_path / "add.cu"
    done = tilewright("emit", "kernels/vector_add.py", "-o", str(out))
    assert done.returncode == 0 and done.stdout == "" and out.read_text() == tilewright("emit", "kernels/vector_add.py").stdout


def test_no_colour_where_there_is_no_terminal():
    assert "\033" not in tilewright("check", "kernels/vector_add.py", "--audit", "0").stdout


def test_colour_on_a_terminal(tmp_path):
    if not shutil.which("script"):
        pytest.skip("no `script` to make a terminal")
    words = f"{PROGRAM} check kernels/vector_add.py --audit 0"
    plain = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    seen = subprocess.run(["script", "-qec", words, "/dev/null"], capture_output=True, text=True, cwd=SOURCE, env={**plain, "TERM": "xterm"}, timeout=60).stdout
    assert "\033[32mproved\033[0m" in seen
    unseen = subprocess.run(["script", "-qec", words, "/dev/null"], capture_output=True, text=True, cwd=SOURCE, env={**plain, "TERM": "xterm", "NO_COLOR": "1"}, timeout=60).stdout
    assert "\033[32m" not in unseen


def test_bash_completes_commands_options_and_files(tmp_path):
    (tmp_path / "tilewright.bash").write_text(tilewright("completion", "bash").stdout)
    ask = 'source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tilewright; echo "${COMPREPLY[@]}"'

    def completed(*words):
        done = subprocess.run(["bash", "-c", ask, "bash", str(tmp_path / "tilewright.bash"), *words], capture_output=True, text=True, cwd=SOURCE, timeout=20)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout.split()

    assert completed("tilewright", "che") == ["check"]
    assert "--audit" in completed("tilewright", "check", "--a") and "--schedules" in completed("tilewright", "run", "--sch")
    assert "kernels/softmax.py" in completed("tilewright", "check", "kernels/softm")


def test_zsh_and_the_manual_page():
    zsh, page = tilewright("completion", "zsh").stdout, tilewright("completion", "man").stdout
    assert zsh.startswith("#compdef tilewright") and "'check:" in zsh
    if shutil.which("zsh"):
        assert subprocess.run(["zsh", "-n"], input=zsh, text=True, capture_output=True).returncode == 0
    assert page.startswith(".TH TILEWRIGHT 1") and ".SS check" in page and "\\-\\-audit" in page


def test_ctrl_c_leaves_the_best_kernel_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "best.py"
    environment = {**os.environ, "TILEWRIGHT_STATE": str(tmp_path)}
    running = subprocess.Popen([PROGRAM, "optimize", "tasks/gelu.toml", "--no-gpu", "-o", str(out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=SOURCE, env=environment)
    said = ""
    for line in running.stdout:
        said += line
        if line.lstrip().startswith("1"):  # the second step is over: the first was accepted
            running.send_signal(signal.SIGINT)
            break
    said += running.stdout.read()
    status = running.wait(timeout=60)
    if status == 0:
        pytest.skip("the run was over before it could be stopped")
    assert status == 130 and "tilewright resume" in said and "the best kernel so far is in" in said, said
    assert "@tw.kernel" in out.read_text()


def test_a_counterexample_as_a_page(tmp_path):
    (tmp_path / "no_fence.py").write_text((SOURCE / "kernels/gemm_sm90.py").read_text().replace("                tw.fence_async()\n", "", 1))
    page = tmp_path / "page.html"
    done = tilewright("check", str(tmp_path / "no_fence.py"), "--set", "T=bf16", "--html", str(page), "--json")
    facts = json.loads(done.stdout)["kernels"][0]["counterexample"]
    text = page.read_text()
    assert facts["code"] in text and "What happens" in text and "<script" not in text and "http" not in text
    for step in facts["trace"]:  # every step is in its row, with the words of the JSON
        assert html.escape(step["who"], quote=False) in text and f"line {step['place']['line']}: {step['action']}" in text
