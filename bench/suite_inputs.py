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


def rows_of_experts(rows, tokens, experts, load, seed):
    """How many rows each expert gets. balanced; routed: every token to rows / tokens different experts at random; zipf: shares 1 / rank, experts in
    random order; half empty: every second expert gets nothing."""
    generator = random.Random(seed)
    if load == "balanced":
        return [rows * (e + 1) // experts - rows * e // experts for e in range(experts)]
    counts = [0] * experts
    if load == "routed":
        for _ in range(tokens):
            for e in generator.sample(range(experts), rows // tokens):
                counts[e] += 1
        return counts
    shares = [1.0 / (1 + rank) for rank in range(experts)] if load == "zipf" else [float(e % 2) for e in range(experts)]
    if load == "zipf":
        generator.shuffle(shares)
    for e in generator.choices(range(experts), shares, k=rows):
        counts[e] += 1
    return counts


def tile_table(counts, high, step, together, mixed=True):
    """[(first row, end)] of tiles of at most `high` rows: the tiles of an expert are nearly equal and, but for its last, multiples of `step` rows.

    Blocks take the `together` tiles of a batch in turn. Mixed, half of a batch are the highest tiles that are left, neighbours of one expert where it has several
    (they share its weights in L2), half the lowest: these wait for their weights while those keep the tensor cores busy. Where a batch lasts for several
    waves of blocks, in the order of experts: a wave then reads the weights of one expert or two.
    """
    experts, begin = [], 0
    for rows in counts:
        number, units = -(-rows // high), -(-rows // step)
        tiles, at = [], begin
        for i in range(number):
            stop = min(begin + rows, at + step * (units // number + (i < units % number)))
            tiles.append((at, stop))
            at = stop
        experts.append(tiles)
        begin += rows
    if not mixed:
        return [t for tiles in experts for t in tiles]
    falling = [t for tiles in sorted(experts, key=lambda tiles: -max((end - first for first, end in tiles), default=0)) for t in tiles]
    ordered, front, back = [], 0, len(falling)
    while front < back:
        high_ones = falling[front : min(back, front + together // 2)]
        front += len(high_ones)
        low_ones = falling[max(front, back - (together - together // 2)) : back]
        back -= len(low_ones)
        ordered += high_ones + low_ones[::-1]
    return ordered


def routed_rows(sizes, tokens, load="balanced", high=256, step=32, together=8, mixed=True, seed=5):
    """rows, expert, tile_first, tile_end of kernels/grouped_gemm_sm90.py and gathered_swiglu_sm90.py. Spare tiles are empty."""
    counts = rows_of_experts(sizes["P"], tokens, sizes["E"], load, seed)
    tiles = tile_table(counts, high, step, together, mixed)
    if len(tiles) > sizes["BATCHES"] * together:
        raise SystemExit(f"BATCHES must be at least {-(-len(tiles) // together)}, it is {sizes['BATCHES']}")
    tiles += [(0, 0)] * (sizes["BATCHES"] * together - len(tiles))
    generator = random.Random(seed + 1)
    made = {"expert": [e for e, n in enumerate(counts) for _ in range(n)], "tile_first": [first for first, _ in tiles], "tile_end": [end for _, end in tiles]}
    if "T" in sizes:
        made["rows"] = [generator.randrange(tokens) for _ in range(sizes["P"])]
    return made


def places(sizes, tensor, count, of, distinct=False, seed=9):
    """As many places as the size `count` says among those of the size `of`; each at most once where they are distinct."""
    generator = random.Random(seed)
    draw = generator.sample if distinct else generator.choices
    return {tensor: draw(range(sizes[of]), k=sizes[count])}


def signs(sizes, tensor, seed=1):
    """An M x N matrix of -1, 0 and 1. Every partial sum of up to 256 rows is a whole number that 16 bits hold exactly, in any order."""
    if sizes["M"] > 256:
        raise SystemExit(f"M must be at most 256 for sums that bf16 holds exactly, it is {sizes['M']}")
    generator = random.Random(seed)
    return {tensor: [generator.randint(-1, 1) for _ in range(sizes["M"] * sizes["N"])]}


def cached(sizes, share=1.0, seed=3):
    """lengths of kernels/decode_sm90.py: all of the cache, or lengths up to a share of it."""
    generator = random.Random(seed)
    return {"lengths": [sizes["T"] if share == 1.0 else generator.randint(1, max(1, int(sizes["T"] * share))) for _ in range(sizes["B"])]}


def paged(sizes, page=128, share=1.0, seed=3):
    """table, lengths of kernels/decode_paged_sm90.py: each sequence has its own pages, in random order; all of them full, or lengths up to a share of that."""
    generator = random.Random(seed)
    pages = list(range(sizes["PAGES"]))
    generator.shuffle(pages)
    longest = sizes["MP"] * page
    if len(pages) < sizes["B"] * sizes["MP"]:
        raise SystemExit(f"PAGES must be at least {sizes['B'] * sizes['MP']}, it is {len(pages)}")
    lengths = [longest if share == 1.0 else generator.randint(1, max(1, int(longest * share))) for _ in range(sizes["B"])]
    return {"table": pages[: sizes["B"] * sizes["MP"]], "lengths": lengths}


def slopes(sizes, heads):
    """slope of attention_alibi: powers of two that fall from head to head, as ALiBi has them."""
    return {"slope": [2.0 ** (-8.0 * (h + 1) / heads) for h in range(heads)]}


def packed(sizes, seed=6):
    """document, starts, tile_first, tile_end of attention_packed: E documents of random lengths that fill P rows, cut into tiles of 128."""
    generator = random.Random(seed)
    cuts = sorted(generator.randrange(sizes["P"] + 1) for _ in range(sizes["E"] - 1))
    starts = [0] + cuts + [sizes["P"]]
    tiles = [(at, min(at + 128, end)) for first, end in zip(starts, starts[1:]) for at in range(first, end, 128)]
    if len(tiles) > sizes["TILES"]:
        raise SystemExit(f"TILES must be at least {len(tiles)}, it is {sizes['TILES']}")
    tiles.sort(key=lambda t: -(t[0] - max(s for s in starts if s <= t[0])))  # the longest first
    tiles += [(0, 0)] * (sizes["TILES"] - len(tiles))
    document = [e for e, (first, end) in enumerate(zip(starts, starts[1:])) for _ in range(first, end)]
    return {"document": document, "starts": starts, "tile_first": [first for first, _ in tiles], "tile_end": [end for _, end in tiles]}


def sorted_tokens(sizes, seed=4):
    """order, token, starts of embedding_gradient: P positions of L rows with random tokens, sorted by token."""
    generator = random.Random(seed)
    pairs = sorted((generator.randrange(sizes["V"]), p % sizes["L"]) for p in range(sizes["P"]))
    starts, at = [], 0
    for v in range(sizes["V"] + 1):
        while at < len(pairs) and pairs[at][0] < v:
            at += 1
        starts.append(at)
    return {"order": [p for _, p in pairs], "token": [v for v, _ in pairs], "starts": starts}


def places(sizes, tensor, seed=5):
    """Of P sources, places among V: many of them the same, some outside on either side."""
    generator = random.Random(seed)
    most = max(1, sizes["V"] // 3)
    return {tensor: [generator.choice((generator.randrange(sizes["V"]), generator.randrange(most), generator.randrange(-2, sizes["V"] + 3))) for _ in range(sizes["P"])]}


def make(name, sizes, arguments):
    function = globals().get(name)
    if not callable(function):
        raise SystemExit(f"bench/suite_inputs.py has no function named {name}")
    return function(sizes, **arguments)


if __name__ == "__main__":
    print(json.dumps(make(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))))
