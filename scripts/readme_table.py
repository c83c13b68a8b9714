#!/usr/bin/env python3
"""Writes the tables of README.md and docs/ from the recorded results.

    python3 scripts/readme_table.py                       rewrite the text between the markers
    python3 scripts/readme_table.py --check               exit status 1 when a table is stale (a test runs this)
    python3 scripts/readme_table.py --verdicts PROGRAM    run `PROGRAM check` on every file of kernels/ first

Sources: bench/results/h200/ of every suite of bench/suites/ (`tilewright bench --suite`), bench/results/h200/kernels.json (bench/check_kernels.py), bench/results/h200/targets.json (hand-written kernels), bench/results/h200/handwritten.json (kernels from the language beside them: bench/targets/handwritten.py), bench/results/h200/probes.json (probes of the instruction tables),
bench/results/verdicts.json (what `tilewright check` says of every shipped kernel), bench/results/mutation.json
(`tilewright mutate --json`), bench/results/agent (bench/agent_suite.py, scripts/learning_table.py), and the single records that scripts/records_table.py names. A source that does not exist yet gives a
sentence that says so. A table stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; nothing in it is typed by hand.
"""
import argparse
import ast
import functools
import glob
import json
import math
import os
import re
import pathlib
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "scripts")]
import agent_suite  # noqa: E402
import learning_table  # noqa: E402
import records_table  # noqa: E402

TARGETS = "bench/results/h200/targets.json"
HANDWRITTEN = "bench/results/h200/handwritten.json"
SANITIZER = "bench/results/h200/sanitizer.json"
PROBES = "bench/results/h200/probes.json"
KERNELS_CHECKED = "bench/results/h200/kernels.json"
SUITES = ("gemm", "attention", "attention_variants", "backward", "decode", "grouped", "memory", "precision", "training")
VERDICTS = "bench/results/verdicts.json"
MUTATION = "bench/results/mutation.json"
CROSSCHECK = "bench/results/crosscheck.json"
AGENT = "bench/results/agent"
PAGES = ["README.md", "docs/agent.md", "docs/performance-notes.md", "docs/trusted-base.md", "docs/verifier.md"]


def read(path):
    try:
        with open(os.path.join(ROOT, path)) as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows])


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def workload(row):
    """The group a measured case is summarised in."""
    case, family = row["case"], row.get("family") or ""
    later = ", dependent launch" if "dependent launch" in case else ""
    if family == "gemm":
        m, n, k = map(int, re.search(r"(\d+)x(\d+)x(\d+)", case).groups())
        if n % 8 or k % 8:
            return "GEMM bf16, rows that TMA cannot read or write" + later
        return ("GEMM bf16, 1 to 128 rows" if m <= 128 else "GEMM bf16") + later
    if family == "grouped":
        routing = "routed" if "routed" in case else "balanced"
        return f"grouped GEMM bf16, {routing}" + (", rows gathered by index" if "gathered" in case else "")
    if family == "attention":
        head, mask = re.search(r"d(\d+) (full|causal)", case).groups()
        return f"attention forward bf16, head dimension {head}, {mask}"
    if family == "memory":
        kind = case.split("_")[0]
        return {"cumsum": "cumulative sum", "colsum": "sum over rows"}.get(kind, kind)
    return family


def measured_rows():
    data = read(TARGETS)
    rows = [r for r in (data or {}).get("cases", []) if r.get("ratio")]
    return data, rows


def measured_summary():
    data, rows = measured_rows()
    if not rows:
        return f"`{TARGETS}` has not been recorded yet; docs/performance/ holds the measurements of the sweeps."
    groups = {}
    for row in rows:
        groups.setdefault(workload(row), []).append(row)
    out = []
    for name, members in groups.items():
        ratios = [r["ratio"] for r in members]
        streams = [r["of_best_stream"] for r in members if r.get("of_best_stream")]
        share = f"{100 * min(streams):.0f} to {100 * max(streams):.0f}%" if streams else ""
        out.append([name, len(members), ", ".join(sorted({str(r["peer"]) for r in members})), f"**{geometric_mean(ratios):.3f}**",
                    f"{min(ratios):.3f} to {max(ratios):.3f}", share])
    versions = data.get("versions") or {}
    made = ", ".join(f"{k} {versions[k]}" for k in ("gpu", "torch", "cuda", "cudnn", "driver") if versions.get(k))
    failed = "".join(f" The family {name} did not finish in that run." for name in data.get("failed") or {})
    return (table(["workload", "cases", "peer", "peer time / ours", "worst to best", "of the best copy"], out)
            + f"\n\n{data.get('measured', 'date not recorded')}; {made}. `{data.get('command', '')}`.{failed}")


def measured_cases():
    data, rows = measured_rows()
    if not rows:
        return f"`{TARGETS}` has not been recorded yet."
    out = []
    for r in rows:
        interval = r.get("interval") or []
        out.append([r["case"], f"{r['ours_us']:.1f}", r["peer"], f"{r['peer_us']:.1f}", f"{r['ratio']:.3f}",
                    f"{interval[0]:.3f} to {interval[1]:.3f}" if len(interval) == 2 else ""])
    return table(["case", "ours, us", "peer", "peer, us", "ratio", "95% interval"], out)


def handwritten():
    """Kernels from the language beside the hand-written ones: a family a row."""
    data = read(HANDWRITTEN)
    if not data:
        return f"`{HANDWRITTEN}` has not been recorded yet."
    groups = {}
    for r in data["cases"]:
        if r.get("ratio"):
            groups.setdefault(r["case"].split()[0].replace("TN", "GEMM"), []).append(r)
    rows = []
    for name, members in groups.items():
        worst = min(members, key=lambda r: r["ratio"])
        rows.append([name, len(members), f"**{geometric_mean([r['ratio'] for r in members]):.3f}**", f"{worst['ratio']:.3f} ({worst['case']})", sum(r["ratio"] >= 0.98 for r in members)])
    return table(["family", "cases", "hand-written time / ours, geometric mean", "worst case", "cases at 0.98 or more"], rows) + f"\n\n`{data['command']}`."


def handwritten_cases():
    data = read(HANDWRITTEN)
    if not data:
        return f"`{HANDWRITTEN}` has not been recorded yet."
    return table(["case", "ours, us", "hand-written, us", "hand-written time / ours", "95% interval"],
                 [[r["case"], f"{r['ours_us']:.1f}", f"{r['peer_us']:.1f}", f"{r['ratio']:.3f}", "{:.3f} to {:.3f}".format(*r["interval"])] for r in data["cases"] if r.get("ratio")])


def sanitized():
    data = read(SANITIZER)
    if not data:
        return f"`{SANITIZER}` has not been recorded yet."
    parts = [f"{tool} {t['clean']} of {t['clean'] + t['with_errors'] + t['explained'] + t['no_answer']} clean" + "".join(f", {t[k]} {words}" for k, words in (("with_errors", "with errors"), ("no_answer", "without an answer")) if t[k])
             for tool, t in data["totals"].items()]
    parts += [f"the {r['tool']} report for {r['kernel']} is none: {r['explained']}" for r in data["cases"] if "explained" in r]
    return "compute-sanitizer over the shipped kernels, each on a small ragged shape: " + "; ".join(parts) + f" (`{data['command']}`)."


def suites():
    """Kernels from the language against their peers: the best peer of each case of every recorded suite."""
    out, commands, missing, versions = [], [], [], {}
    for name in SUITES:
        data = read(f"bench/results/h200/{name}.json")
        if not data:
            missing.append(name)
            continue
        commands.append(data.get("command", ""))
        versions.update(data.get("versions") or {})
        cases = {}
        for r in data["cases"]:
            cases.setdefault(r["case"], []).append(r)
        for case, rows in cases.items():
            measured = [r for r in rows if r.get("ratio")]
            if not measured:
                out.append([case, "", rows[0].get("peer", ""), "", "", rows[0].get("status", "not measured")])
                continue
            best = min(measured, key=lambda r: r["ratio"])   # the fastest peer
            low, high = best["interval"]
            out.append([case, f"{best['ours_us']:.1f}", best["peer"], f"{best['peer_us']:.1f}", f"**{best['ratio']:.3f}**", f"{low:.3f} to {high:.3f}"])
    note = "".join(f" `bench/results/h200/{name}.json` has not been recorded yet." for name in missing)
    if not out:
        return "No suite has been recorded yet (`tilewright bench --suite NAME`)."
    made = ", ".join(f"{k} {versions[k]}" for k in ("gpu", "torch", "driver", "nvrtc") if versions.get(k))
    return table(["case", "ours, us", "fastest peer", "its us", "peer time / ours", "95% interval"], out) + f"\n\n{made}. " + ", ".join(f"`{c}`" for c in commands) + "." + note


BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "tf32": 4, "bf16": 2, "f16": 2, "i16": 2, "e4m3": 1, "e5m2": 1, "i8": 1, "u8": 1, "bool": 1}


@functools.lru_cache(maxsize=None)
def declared_tensors(file):
    """Of every tensor parameter in a kernel file: its type's name and its dims, as expressions over sizes and constants."""
    with open(os.path.join(ROOT, file)) as f:
        tree = ast.parse(f.read())
    calls = [a.annotation for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for a in function.args.args if isinstance(a.annotation, ast.Call)]
    return [(ast.unparse(c.args[0]), [compile(ast.Expression(d), file, "eval") for d in c.args[1:]]) for c in calls if ast.unparse(c.func) == "tw.Tensor" and len(c.args) > 1]


def misaligned(case):
    """Does a row of an operand begin elsewhere than at a multiple of 16 bytes (of vectors: is the length no such multiple)? Libraries are slow there, and a mean over both kinds hides it."""
    names, found = {**case["sizes"], **case.get("constants", {})}, []
    for dtype, dims in declared_tensors(case["file"]):
        try:
            shape = [eval(d, {"__builtins__": {}}, names) for d in dims]
        except NameError:
            continue   # of another kernel of the file, or a temporary
        found.append((len(shape), shape[-1] * BYTES[names.get(dtype, "bf16") if dtype not in BYTES else dtype] % 16 != 0))
    if not found:
        raise ValueError(f"{case['case']}: {case['file']} has no tensor over the sizes {', '.join(case['sizes'])}")
    rows = [bad for rank, bad in found if rank > 1]
    return any(rows or [bad for _, bad in found])


def fastest(cases):
    """Of the cases that have several rivals: each beside the fastest of them. A stream of bytes and our own kernels are bounds, not rivals."""
    rivals = {}
    for r in cases:
        if r.get("ratio") and r["peer"] in RIVALS:
            rivals.setdefault(r["case"], []).append(r)
    several = [rows for rows in rivals.values() if len(rows) > 1]
    names = list(dict.fromkeys(r["peer"] for rows in several for r in rows))
    return "the faster of " + " and ".join(names), [min(rows, key=lambda r: r["ratio"]) for rows in several]


RIVALS = ("cuDNN (torch SDPA)", "cuDNN (torch)", "FlashAttention-3")


def suite_summary():
    """One row a suite, peer and kind of shape: the geometric mean over its cases, and the worst."""
    rows = []
    for name in SUITES:
        cases = (read(f"bench/results/h200/{name}.json") or {}).get("cases", [])
        peers = {}
        for r in cases:
            if r.get("ratio"):
                peers.setdefault(r["peer"], []).append(r)
        label, best = fastest(cases)
        if best:
            peers[label] = best
        for peer, every in peers.items():
            for kind, measured in (("aligned", [r for r in every if not misaligned(r)]), ("misaligned", [r for r in every if misaligned(r)])):
                if measured:
                    worst = min(measured, key=lambda r: r["ratio"])
                    rows.append([name, peer, kind, len(measured), f"**{geometric_mean([r['ratio'] for r in measured]):.3f}**", sum(r["ratio"] < 1 for r in measured), f"{worst['ratio']:.3f} ({worst['case']})"])
    return (table(["suite", "peer", "rows", "cases", "peer time / ours, geometric mean", "cases under 1", "worst case"], rows)
            + "\n\nMisaligned: rows of an operand that do not begin at multiples of 16 bytes, where libraries are slow; a mean over both would flatter us. A stream of as many bytes and our own bare GEMM are bounds, "
            "not rivals: there 1 is the most one can expect. Every case, losses included: [docs/performance-notes.md](docs/performance-notes.md).")


def records():
    """What was measured by itself, outside the suites."""
    return table(["what", "figure", "file"], records_table.rows(read))


def shortfalls():
    """The cases that miss a bar, by their names: a stream's bandwidth, the price of an epilogue, the hand-written kernels."""
    def below(path, bar, peers=None):
        measured = [r for r in (read(path) or {}).get("cases", []) if r.get("ratio") and (not peers or r["peer"] in peers)]
        low = sorted((r for r in measured if r["ratio"] < bar), key=lambda r: r["ratio"])
        return len(measured), ", ".join(f"{r['case']} {r['ratio']:.3f}" for r in low), len(low)

    lines = []
    for what, (cases, names, low) in (("memory-bound cases under 90% of a stream of as many bytes", below("bench/results/h200/memory.json", 0.90, ["a stream of as many bytes"])),
                             ("epilogues that cost a product more than 3%", below("bench/results/h200/gemm.json", 0.97, ["our bare GEMM", "two of our bare GEMMs"])),
                             ("cases more than 2% behind the hand-written kernel", below(HANDWRITTEN, 0.98))):
        lines.append(f"  - {what}: {low} of {cases} ({names})" if low else f"  - {what}: none of {cases}")
    return "\n".join(lines)


def checked_kernels():
    data = read(KERNELS_CHECKED)
    if not data:
        return f"`{KERNELS_CHECKED}` has not been recorded yet."
    kernels = {(c["file"], c["kernel"]) for c in data["cases"]}
    wrong = f", **{len(data['not_right'])} not**" if data["not_right"] else ", none wrong"
    return (f"{len(kernels)} kernels and programs over tiny, ragged and larger shapes and two seeds on the {data['versions'].get('gpu', 'GPU')}, outputs poisoned, against fp64: "
            f"{data['right']} runs right{wrong} (`{data['command']}`).")


def probes():
    data = read(PROBES)
    if not data:
        return f"`{PROBES}` has not been recorded yet."
    return (f"{len(data['rows']):,} rows of the instruction tables were run on an {data['versions']['gpu']}: {data['checked']:,} values compared, "
            f"{data['differences']:,} differences (`{data['command']}`).")


def run_checks(program):
    kernels = []
    for path in sorted(glob.glob(os.path.join(ROOT, "kernels", "*.py"))):
        if path.endswith("_parts.py"):  # what kernels share
            continue
        name = os.path.relpath(path, ROOT)
        done = subprocess.run([program, "check", name, "--json"], cwd=ROOT, capture_output=True, text=True)
        for k in json.loads(done.stdout)["kernels"]:
            provers = {}
            for a in k["assertions"]:
                if a["status"] == "proved":
                    provers[a["prover"]] = provers.get(a["prover"], 0) + 1
            kernels.append({
                "file": name, "kernel": k["kernel"], "line": k["line"], "verdict": k["verdict"], "assertions": len(k["assertions"]),
                "proved": sum(a["status"] == "proved" for a in k["assertions"]), "instances": k["instances"], "milliseconds": round(k["milliseconds"], 1), "provers": provers, "questions": k["questions"],
                "open": [{"kind": a["kind"], "status": a["status"], "reason": (a.get("reason") or "").split("\n")[-1].strip()[:240]} for a in k["assertions"]
                         if a["status"] != "proved"],
                "used": k["used"],
            })
        print(name, "exit status", done.returncode, flush=True)
    with open(os.path.join(ROOT, VERDICTS), "w") as f:
        json.dump({"command": "tilewright check kernels/*.py --json", "kernels": kernels}, f, indent=1)
        f.write("\n")


WHY = {  # in words, for kernels that are not proved; shown only while they are not
    "layernorm": "a clipped count summed over the blocks of a cluster",
}


def verdicts():
    """One row a file; what is open, by kernel."""
    data = read(VERDICTS)
    if not data:
        return f"`{VERDICTS}` has not been recorded yet."
    files = {}
    for k in data["kernels"]:
        files.setdefault(k["file"], []).append(k)
    rows = []
    for file, kernels in files.items():
        open_ones = [k for k in kernels if k["verdict"] != "proved"]
        reasons = dict.fromkeys(WHY.get(k["kernel"].split(" ")[0], "") for k in open_ones)
        rows.append([f"[{file}](../{file})", f"{len(kernels) - len(open_ones)} of {len(kernels)}", sum(k["assertions"] for k in kernels),
                     "; ".join(dict.fromkeys(f"`{k['kernel'].split(' ')[0]}`: {k['proved']} of {k['assertions']}" for k in open_ones)), "; ".join(r for r in reasons if r)])
    good = sum(k["verdict"] == "proved" for k in data["kernels"])
    return (f"{good} of {len(data['kernels'])} kernels (variants counted one by one) are proved for all sizes.\n\n"
            + table(["file", "kernels proved", "assertions", "not proved: assertions that are", "why"], rows))


def verdict_totals():
    data = read(VERDICTS)
    if not data:
        return f"`{VERDICTS}` has not been recorded yet."
    good = [k for k in data["kernels"] if k["verdict"] == "proved"]
    return (f"**{len(good)} of {len(data['kernels'])} kernels** (variants counted one by one) in {len({k['file'] for k in data['kernels']})} files are proved for all sizes: "
            f"{sum(k['proved'] for k in data['kernels']):,} of {sum(k['assertions'] for k in data['kernels']):,} assertions. The longest proof takes {max(k['milliseconds'] for k in data['kernels']):.0f} ms, "
            f"the median one {sorted(k['milliseconds'] for k in data['kernels'])[len(data['kernels']) // 2]:.0f} ms ([file by file](docs/verifier.md#shipped-kernels)).")


def mutation_totals():
    data = read(MUTATION)
    if not data:
        return f"`{MUTATION}` has not been recorded yet."
    t = data["totals"]
    return (f"Of {t['real']:,} mutants of {len({r['kernel'] for r in data['rows']})} kernels that are really wrong, **{t['caught']:,} are caught with a confirmed counterexample**, {t['unproved']} are refused as unproved, "
            f"**{t['missed']} are missed**, and no counterexample is a false alarm ({t['false_alarms']}) ([kernel by kernel](docs/verifier.md#mutants)).")


def prover_counts():
    data = read(VERDICTS)
    if not data:
        return f"`{VERDICTS}` has not been recorded yet."
    assertions, questions = {}, {}
    for k in data["kernels"]:
        for sums, counts in ((assertions, k["provers"]), (questions, k.get("questions", {}))):
            for p, n in counts.items():
                sums[p] = sums.get(p, 0) + n
    unsettled = questions.pop("none", 0)

    def cells(sums, p):
        return [f"{sums[p]:,}", f"{100 * sums[p] / sum(sums.values()):.1f}%"] if sums.get(p) else ["", ""]

    names = sorted(assertions.keys() | questions.keys(), key=lambda p: (-assertions.get(p, 0), -questions.get(p, 0)))
    return (table(["prover", "assertions", "share", "integer questions", "share"], [[p] + cells(assertions, p) + cells(questions, p) for p in names])
            + f"\n\nOf the questions, {unsettled:,} more had no proof: most do not hold, and the answer steers the proof (a mask that is not decided stays a mask).")


def slowest():
    """The kernels whose proof takes longest, in processor time."""
    data = read(VERDICTS)
    if not data or not all("milliseconds" in k for k in data["kernels"]):
        return f"`{VERDICTS}` has no times yet."
    ranked = sorted(data["kernels"], key=lambda k: -k["milliseconds"])
    shown = ranked[:12] + [k for k in ranked[12:] if k["file"] in ("kernels/gemm_sm90.py", "kernels/attention_sm90.py")]
    times = [k["milliseconds"] for k in ranked]
    return (table(["kernel", "milliseconds", "instances of the cut-off"], [[f"`{k['kernel']}` of {k['file']}", f"{k['milliseconds']:.0f}", k["instances"]] for k in shown])
            + f"\n\nAll {len(times)} kernels together: {sum(times) / 1000:.1f} s; the median is {times[len(times) // 2]:.0f} ms, {sum(t > 1000 for t in times)} take more than a second.")


def mutation():
    data = read(MUTATION)
    if not data:
        return f"`{MUTATION}` has not been recorded yet; `tilewright mutate FILE` judges the mutants of one file."
    keys = ["mutants", "real", "caught", "unproved", "missed", "false_alarms"]
    kernels = {}
    for row in data["rows"]:
        sums = kernels.setdefault(row["kernel"], dict.fromkeys(keys, 0))
        for key in keys:
            sums[key] += row[key]
    rows = [[name] + [sums[k] for k in keys] for name, sums in kernels.items()]
    rows.append(["**all**"] + [f"**{data['totals'][k]}**" for k in keys])
    return table(["kernel", "mutants", "real", "caught with a counterexample", "refused as unproved", "missed", "false alarms"], rows)


def random_testing():
    data = read(MUTATION)
    if not data or not data["totals"].get("hostile_tests"):
        return f"`{MUTATION}` has no columns of random tests yet; `make mutation` records them."
    keys = ["real", "caught", "random_tests", "hostile_tests"]
    families = {}
    for row in data["rows"]:
        sums = families.setdefault(row["operator"].split("/")[0], dict.fromkeys(keys, 0))
        for key in keys:
            sums[key] += row.get(key, 0)
    rows = [[name] + [sums[k] for k in keys] for name, sums in families.items()]
    rows.append(["**all**"] + [f"**{data['totals'].get(k, 0)}**" for k in keys])
    return table(["operators", "real mutants", "the check, with a counterexample", "random tests", "random tests under hostile schedules, with the race detector"], rows)


def crosscheck():
    data = read(CROSSCHECK)
    if not data:
        return f"`{CROSSCHECK}` has not been recorded yet."
    keys = ["kernels", "clean", "clean_proved", "real", "proved_but_wrong"]
    rows = [[r["family"]] + [r[k] for k in keys] for r in data["rows"]]
    rows.append(["**all**"] + [f"**{data['totals'][k]}**" for k in keys])
    return table(["family", "kernels", "unbroken", "of them proved", "really broken", "of them proved"], rows)


def agent():
    return agent_suite.table(pathlib.Path(ROOT, AGENT)).strip()


def agent_path():
    """The path of the GEMM, step by step."""
    journal = read(f"{AGENT}/gemm.json")
    rows, base = [], None
    for s in journal["steps"]:
        us = s.get("microseconds")
        if s["outcome"] == "accepted":
            base = base or us
            what = "**accepted**"
        else:
            what = "refused: " + s.get("failure_class", "") if s["outcome"] == "failed" else "slower, kept on trial" if "kept on trial" in s["message"] else "slower"
        change = re.split(r" gained |: [\d.]+x of the best| \(kept by", s["message"])[0] if s["outcome"] != "failed" else s["message"][:80]
        rows.append([s["number"], s.get("technique") or "first", f"`{change}`", what, f"{us:.1f}" if us else "", f"{base / us:.1f}" if us and base else ""])
    return table(["step", "technique", "what it changed", "", "us", "times the first"], rows)


def agent_replay(part):
    data = read(f"{AGENT}/replay.json")
    return learning_table.replay_table(data, part) if data else f"`{AGENT}/replay.json` has not been recorded yet."


TABLES = {"agent": agent, "agent_path": agent_path, "agent_learning": lambda: agent_replay("learning"), "agent_ablations": lambda: agent_replay("ablations"), "random_testing": random_testing, "crosscheck": crosscheck, "suites": suites, "suite_summary": suite_summary, "shortfalls": shortfalls, "records": records, "checked": checked_kernels, "measured": measured_summary, "handwritten": handwritten, "handwritten_cases": handwritten_cases, "sanitized": sanitized, "cases": measured_cases, "probes": probes, "verdicts": verdicts, "verdict_totals": verdict_totals, "mutation_totals": mutation_totals, "provers": prover_counts, "slowest": slowest, "mutation": mutation}


def rewritten(text):
    for name, make in TABLES.items():
        pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.S)
        text = pattern.sub(lambda m: m.group(1) + make() + "\n" + m.group(2), text)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--verdicts", metavar="PROGRAM")
    options = parser.parse_args()
    if options.verdicts:
        run_checks(os.path.abspath(options.verdicts))
    stale = []
    for page in PAGES:
        path = os.path.join(ROOT, page)
        with open(path) as f:
            before = f.read()
        after = rewritten(before)
        if after != before:
            stale.append(page)
            if not options.check:
                with open(path, "w") as f:
                    f.write(after)
    for page in stale:
        print(f"{page}: {'stale; run python3 scripts/readme_table.py' if options.check else 'rewritten'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
