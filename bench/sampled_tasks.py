#!/usr/bin/env python3
"""Layers that a data set's prior draws beside those of its networks: shares of new ones, and a picture of how both are distributed.

    sampled_tasks.py --tilewright BUILD/tilewright SET.db [--count 10000] [--picture OUT.svg]

The picture: a row for each kind of layer with sizes of two kinds on its axes (logarithms to base 2), drawn layers as dots, networks' as rings.
Needs nothing but Python.
"""
import argparse
import collections
import json
import math
import pathlib
import random
import subprocess

# Of each kind: what the axes of its picture are, as places in its values
AXES = {"conv": (("pixels", lambda v: v[1] * v[2]), ("channels in and out", lambda v: v[3] * v[4])),
        "depthwise": (("pixels", lambda v: v[1] * v[2]), ("channels", lambda v: v[3])),
        "matmul": (("rows", lambda v: v[0]), ("depth and columns", lambda v: v[1] * v[2])),
        "batch_matmul": (("batch", lambda v: v[0]), ("rows, depth and columns", lambda v: v[1] * v[2] * v[3])),
        "pool": (("pixels", lambda v: v[2] * v[3]), ("channels", lambda v: v[1])),
        "layer_norm": (("rows", lambda v: v[0]), ("width", lambda v: v[1]))}
WIDTH, HEIGHT, LEFT, TOP, GAP = 240, 180, 56, 34, 66


def panel(kind, table, drawn, x, y):
    (across, first), (up, second) = AXES[kind]
    points = [(math.log2(max(1, first(v))), math.log2(max(1, second(v)))) for v in table + drawn]
    low = [math.floor(min(p[i] for p in points)) for i in (0, 1)]
    high = [max(low[i] + 1, math.ceil(max(p[i] for p in points))) for i in (0, 1)]
    place = lambda p: (x + WIDTH * (p[0] - low[0]) / (high[0] - low[0]), y + HEIGHT - HEIGHT * (p[1] - low[1]) / (high[1] - low[1]))  # noqa: E731
    out = [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
           f'<text x="{x}" y="{y - 8}" font-weight="bold">{kind}: {len(drawn)} drawn, {len(table)} of networks</text>',
           f'<text x="{x + WIDTH / 2}" y="{y + HEIGHT + 30}" text-anchor="middle">{across}</text>',
           f'<text transform="translate({x - 38},{y + HEIGHT / 2}) rotate(-90)" text-anchor="middle">{up}</text>']
    for axis, at in ((0, lambda t: (place((t, low[1]))[0], y + HEIGHT + 15)), (1, lambda t: (x - 18, place((low[0], t))[1] + 4))):
        step = max(1, (high[axis] - low[axis]) // 4)
        for tick in range(low[axis], high[axis] + 1, step):
            tx, ty = at(tick)
            out.append(f'<text x="{tx:.1f}" y="{ty:.1f}" text-anchor="middle">2<tspan dy="-4" font-size="8">{tick}</tspan></text>')
    shown = random.Random(1).sample(points[len(table):], min(500, len(drawn)))
    dots = "".join("M%.1f %.1fh0" % place(p) for p in shown)
    out.append(f'<path d="{dots}" stroke="#2471a3" stroke-opacity="0.5" stroke-width="3.2" stroke-linecap="round"/>')
    out += ['<circle cx="%.1f" cy="%.1f" r="3.2" fill="none" stroke="#c0392b" stroke-width="1.2"/>' % p for p in sorted({place(p) for p in points[:len(table)]})]
    return out


def picture(data):
    of = {name: collections.defaultdict(list) for name in ("table", "drawn")}
    for name in of:
        for layer in data[name]:
            of[name][layer["kind"]].append(layer["values"])
    kinds = [kind for kind in AXES if of["table"][kind] and of["drawn"][kind]]
    columns = 3
    rows = -(-len(kinds) // columns)
    width, height = columns * (WIDTH + GAP) + LEFT, rows * (HEIGHT + GAP) + TOP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for i, kind in enumerate(kinds):
        out += panel(kind, of["table"][kind], of["drawn"][kind], LEFT + i % columns * (WIDTH + GAP), TOP + i // columns * (HEIGHT + GAP))
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("set")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--picture", type=pathlib.Path)
    args = parser.parse_args()
    data = json.loads(subprocess.run([args.tilewright, "dataset", "sample", args.set, "--count", str(args.count), "--json"], check=True, capture_output=True).stdout)
    counts = {name: collections.Counter(layer["kind"] for layer in data[name]) for name in ("table", "drawn")}
    print(f"{args.count} drawn from {len(data['table'])}: {data['possible']} possible; of these {data['fresh']} in no network, {data['fresh_sizes']} with a size "
          f"that none has, {data['different']} different from each other")
    for kind, count in counts["drawn"].most_common():
        print(f"| {kind} | {counts['table'][kind]} | {count} |")
    if args.picture:
        args.picture.write_text(picture(data))


main()
