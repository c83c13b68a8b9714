"""`optimize --serve`: the run's page while it goes on, for this machine alone."""
import os
import pathlib
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def get(address, host=None, path=""):
    asked = urllib.request.Request(address + path, headers={"Host": host} if host else {})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return answer.read().decode()


def test_the_page_of_a_run_is_served_while_it_goes_on(tmp_path):
    environment = {**os.environ, "TILEWRIGHT_STATE": str(tmp_path), "TILEWRIGHT_HIDE": "driver"}
    words = [PROGRAM, "optimize", "--computes", "Y[m, n] = relu(X[m, n])", "--set", "M=64,N=256", "--no-gpu", "--steps", "3", "--journal", str(tmp_path / "journal"), "--serve"]
    run = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        line = run.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert address, line
        port = int(address[1])
        page = get(address[0])
        assert page.startswith("<!doctype html>") and "<script nonce=" in page
        assert re.search(r'nonce="(\w+)"', page)[1] != re.search(r'nonce="(\w+)"', get(address[0]))[1]
        for host, path, code in (("elsewhere.example", "", 403), (None, "journal", 404)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                get(address[0], host, path)
            assert refused.value.code == code
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:  # neither a request nor an end: the next one is still answered
            raw.sendall(b"GET / HT")
            time.sleep(0.1)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(b"x" * 20000)
        seen = page
        while run.poll() is None and "relu" not in seen:
            try:
                seen = get(address[0])
                policy = re.search(r"script-src 'nonce-(\w+)'; connect-src 'self'", seen)  # the page's own policy would stop the script
                assert "Content-Security-Policy" not in seen or f'<script nonce="{policy[1]}">' in seen
            except OSError:
                break  # it has ended
            time.sleep(0.1)
        rest, _ = run.communicate(timeout=300)
        assert run.returncode == 0, rest
        assert "relu" in seen or "run's page is" in rest
    finally:
        if run.poll() is None:
            run.terminate()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    done = subprocess.run([*words, "--port", str(taken.getsockname()[1])], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "cannot be served on port" in done.stderr
