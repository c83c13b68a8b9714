#!/usr/bin/env python3
"""What `tilewright check` says of CuTe kernels that others wrote: one line a file.

    python3 bench/cute_real.py PROGRAM FILE.cu ... [--json OUT.json]
    python3 bench/cute_real.py PROGRAM --fetch [--base https://github.com] [--json bench/results/cute_real.json]

Without --fetch the files are yours to bring. With it the repositories of the list below are cloned into a temporary folder, read and thrown away; the result names their revisions. A line says how many questions were answered, about what, what was found, and what was not analysed, by reason. Exit status 1 where a check crashes or takes
longer than a minute; a defect that is found is for you to judge.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("files", nargs="*")
parser.add_argument("--fetch", action="store_true")
parser.add_argument("--base", default="https://github.com", help="where owner/name is cloned from")
parser.add_argument("--json", default="")
o = parser.parse_args()

PUBLIC = [("NVIDIA/cutlass", "examples/cute/tutorial/sgemm_sm80.cu"), ("NVIDIA/cutlass", "examples/cute/tutorial/hopper/wgmma_tma_sm90.cu"), ("deepseek-ai/FlashMLA", "csrc/sm90/decode/dense/splitkv_mla.cuh"),
          ("reed-lau/cute-gemm", "gemm-multi-stage.cu"), ("ColfaxResearch/cutlass-kernels", "src/fmha/fmha_forward.cu"), ("ColfaxResearch/cutlass-kernels", "src/cute-gemm-tma-gma/gemm.cu"),
          ("Dao-AILab/flash-attention", "hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp"), ("NVIDIA/cutlass", "examples/cute/tutorial/hopper/wgmma_sm90.cu"), ("NVIDIA/cutlass", "examples/cute/tutorial/tiled_copy_if.cu"),
          ("ColfaxResearch/cfx-article-src", "pipeline-gemm/sm90_gemm_multistage.cu"), ("ColfaxResearch/cfx-article-src", "pipeline-gemm/hopper-gemm-ws/hopper_gemm_kernel.h"), ("ColfaxResearch/cfx-article-src", "tma/scale_tma_kernel.h"),
          ("Xin-Jing-11/cutlass-cute-playground", "CUTLASS/flash_attention/flash_attention_multistage.cuh"), ("ArthurinRUC/cutlass-notes", "14-warp-specialization/warp_specialization.cu")]


def fetched(folder):
    """The listed files, each with its repository, path and revision."""
    out = []
    for repository, path in PUBLIC:
        clone = folder / repository.replace("/", "+")
        if not clone.exists():
            how = ["--depth", "1", "--filter=blob:none"] if "://" in o.base else ["--shared"]
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", *how, f"{o.base}/{repository}", str(clone)], check=True, timeout=600)
        revision = subprocess.run(["git", "-C", str(clone), "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        text = subprocess.run(["git", "-C", str(clone), "show", f"HEAD:{path}"], check=True, stdout=subprocess.PIPE).stdout
        file = folder / pathlib.PurePosixPath(path).name
        file.write_bytes(text)
        out.append((file, {"repository": repository, "path": path, "revision": revision}))
    return out


def reason(text):
    text = re.sub(r"`[^`]*`", "`...`", text)
    return re.sub(r"\d+", "n", text)


rows, failed = [], False
scratch = tempfile.TemporaryDirectory()
for file, source in [(f, {}) for f in o.files] + (fetched(pathlib.Path(scratch.name)) if o.fetch else []):
    began = time.monotonic()
    try:
        ran = subprocess.run([o.program, "check", file, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        said = json.loads(ran.stdout)
    except (subprocess.TimeoutExpired, ValueError) as problem:
        rows.append({"file": pathlib.Path(file).name, "problem": str(problem)[:200]})
        failed = True
        continue
    found = collections.Counter(d["code"] for d in said.get("diagnostics", []) if d.get("severity") == "error")
    remarks = collections.Counter(d["code"] for d in said.get("diagnostics", []) if d.get("severity") != "error")
    rows.append({"file": pathlib.Path(file).name, **source, "lines": len(pathlib.Path(file).read_text(errors="replace").splitlines()), "verdict": said["verdict"], "questions": said["checks"],
                 "covered": dict(collections.Counter(c["what"] for c in said["covered"])), "found": dict(found), "remarks": dict(remarks), "not_analysed": len(said["not_analysed"]),
                 "reasons": dict(collections.Counter(reason(n["why"]) for n in said["not_analysed"]).most_common(6)), "seconds": round(time.monotonic() - began, 2)})
for r in rows:
    if "problem" in r:
        print(f"{r['file']:32} {r['problem']}")
        continue
    print(f"{r['file']:32} {r['lines']:5} lines  {r['verdict']:11} {r['questions']:4} questions  {r['not_analysed']:3} not analysed  {r['seconds']:.2f} s  " + ", ".join(f"{n} {w}" for w, n in r["covered"].items()))
    if r["found"]:
        print("    found: " + ", ".join(f"{code} x {n}" for code, n in r["found"].items()))
    for why, n in r["reasons"].items():
        print(f"    {n:3} x {why}")
if o.json:
    pathlib.Path(o.json).write_text(json.dumps({"suite": "CuTe kernels of others", "files": rows}, indent=1) + "\n")
sys.exit(1 if failed else 0)
