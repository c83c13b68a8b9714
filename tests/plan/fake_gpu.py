#!/usr/bin/env python3
"""A worker that answers like `tilewright gpu-worker` without a GPU: everything is right, times are a function of the kernel's sketch.

It lets tests drive the loop's measured path. TILEWRIGHT_PROGRAM names it; by environment:
    FAKE_GPU_COUNT   a file in which requests are counted across workers (the first one is the loop's probe)
    FAKE_GPU_KILL    "STAGE:N": in that stage of request N, write FAKE_GPU_COUNT.now and wait: whoever started the program kills it (a boxed worker may not)
    FAKE_GPU_CRASH   "N,...": die by a signal while answering request N
    FAKE_GPU_WRONG   "N,...": answer `wrong`
"""
import json
import os
import pathlib
import signal
import sys
import time
import zlib


def listed(name):
    return {int(n) for n in os.environ.get(name, "").split(",") if n}


def microseconds(request):
    text = request.get("text", "")
    sketch = next((line for line in text.splitlines() if line.startswith("# sketch:")), text)
    return 20.0 + zlib.crc32(sketch.encode()) % 1000 / 10


def say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main():
    assert sys.argv[1:] == ["gpu-worker"], sys.argv
    counter = pathlib.Path(os.environ["FAKE_GPU_COUNT"])
    kill = os.environ.get("FAKE_GPU_KILL", "")
    for line in sys.stdin:
        request = json.loads(line)
        number = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(number))
        for stage in ("compile", "run", "check", "measure"):
            if stage == "measure" and not request.get("time"):
                break
            say({"stage": stage})
            if kill == f"{stage}:{number}":
                counter.with_suffix(".now").touch()
                time.sleep(600)
            if number in listed("FAKE_GPU_CRASH"):
                os.kill(os.getpid(), signal.SIGSEGV)
        answer = {"status": "right", "seed": request.get("seed"), "sizes": request["sizes"], "versions": {"gpu": "a fake GPU", "driver": "0.0"},
                  "check": {"reference": "none", "outputs": [{"output": "Y", "worst": 1e-3, "tolerance": 1e-2, "wrong": False, "unwritten": 0, "nan": 0}]}}
        if number in listed("FAKE_GPU_WRONG"):
            answer.update(status="wrong", message="Y is wrong")
        elif request.get("time"):
            us = microseconds(request)
            answer.update(us=us, timing={"us": us, "interval": [us * 0.99, us * 1.01], "rounds": request.get("rounds"), "l2": "cold", "l2_note": "fake",
                                         "clocks": {"before": {"sm_mhz": 1980}, "after": {"sm_mhz": 1755}}}, timed_check={"outputs": [], "unwritten": 0})
            against = request.get("against")
            if against:
                other = 40.0 if against.get("peer") else microseconds(against)
                answer.update(ratio=other / us, ratio_interval=[other / us * 0.99, other / us * 1.01], peer={"name": against.get("peer", "peer"), "us": other, "right": True, "outputs": []})
        say(answer)


if __name__ == "__main__":
    main()
