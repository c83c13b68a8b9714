"""Inputs of suite cases whose contents must fit one another. A case names a function here: {"inputs_from": "NAME", "arguments": {...}}.

    python3 bench/suite_inputs.py NAME SIZES_JSON ARGUMENTS_JSON      prints {input name: [values in memory order]}

A function takes (sizes, **arguments) and gives that dictionary; the same arguments give the same contents everywhere.
"""
import json
import random
import sys


def positions_of_experts(tokens, experts, top_k, balanced, seed):
    """[(expert, token)] sorted by expert: every token goes to top_k different experts."""
    generator = random.Random(seed)
    pairs = []
    weights = [1.0 if balanced else 1.0 / (1 + e) for e in range(experts)]
    for t in range(tokens):
        if balanced:
            chosen = [(t * top_k + i) % experts for i in range(top_k)]
        else:
            chosen = []
            while len(chosen) < top_k:
                e = generator.choices(range(experts), weights)[0]
                if e not in chosen:
                    chosen.append(e)
        pairs += [(e, t) for e in chosen]
    return sorted(pairs)


def routed_tiles(sizes, top_k=1, balanced=True, tile=64, seed=1):
    """rows, expert, tile_first, tile_end of kernels/grouped_gemm_sm80.py. TILES is what is needed at most; spare tiles are empty."""
    pairs = positions_of_experts(sizes["T"], sizes["E"], top_k, balanced, seed)
    if len(pairs) != sizes["P"]:
        raise SystemExit(f"P must be T * top_k = {len(pairs)}, it is {sizes['P']}")
    first, end = [], []
    begin = 0
    while begin < len(pairs):
        stop = begin
        while stop < len(pairs) and pairs[stop][0] == pairs[begin][0]:
            stop += 1
        for at in range(begin, stop, tile):
            first.append(at)
            end.append(stop)
        begin = stop
    if len(first) > sizes["TILES"]:
        raise SystemExit(f"TILES must be at least {len(first)}, it is {sizes['TILES']}")
    while len(first) < sizes["TILES"]:
        first.append(0)
        end.append(0)
    return {"rows": [t for _, t in pairs], "expert": [e for e, _ in pairs], "tile_first": first, "tile_end": end}


def signs(sizes, tensor, seed=1):
    """An M x N matrix of -1, 0 and 1. Every partial sum of up to 256 rows is a whole number that 16 bits hold exactly, in any order."""
    if sizes["M"] > 256:
        raise SystemExit(f"M must be at most 256 for sums that bf16 holds exactly, it is {sizes['M']}")
    generator = random.Random(seed)
    return {tensor: [generator.randint(-1, 1) for _ in range(sizes["M"] * sizes["N"])]}


def make(name, sizes, arguments):
    function = globals().get(name)
    if not callable(function):
        raise SystemExit(f"bench/suite_inputs.py has no function named {name}")
    return function(sizes, **arguments)


if __name__ == "__main__":
    print(json.dumps(make(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))))
