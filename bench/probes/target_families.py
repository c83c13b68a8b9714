"""The families of probe_target.py by name."""
import json

import torch

import probe_matrix
import probe_memory
import probe_warp

FAMILIES = {"mma": probe_matrix.mma, "matrix_moves": probe_matrix.matrix_moves, "sums_mma": probe_matrix.sums_mma,
            "sums_wgmma": probe_matrix.sums_wgmma, "tma_load": probe_memory.tma_load, "tma_store": probe_memory.tma_store,
            "multicast": probe_memory.multicast, "copies": probe_memory.copies, "reduce": probe_memory.reduce,
            "shuffle": probe_warp.shuffle, "barriers": probe_warp.barriers, "mbarrier": probe_warp.mbarrier,
            "convert": probe_warp.convert, "registers": probe_warp.registers_family, "banks": probe_warp.banks}
NUMBERED = {"wgmma": lambda cases, tool, i: probe_matrix.wgmma(cases, tool, i, 4), "tma_illegal": probe_memory.tma_illegal}


def run(family, tool, cases_path, out_path):
    torch.set_num_threads(1)  # the tensors are small, and many families run at once
    with open(cases_path) as f:
        cases = json.load(f)
    name, _, index = family.partition(".")
    rows = NUMBERED[name](cases, tool, int(index)) if index else FAMILIES[name](cases, tool)
    with open(out_path, "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
            f.flush()
