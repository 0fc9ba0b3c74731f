#!/usr/bin/env python3
"""GridSample in every mode, padding and alignment, of one to three spatial axes, against its taps written out in numpy; with the input known and computed,
and with all known, which the compiler's evaluator computes.

    grid_sample.py --tilewright BUILD/tilewright
"""
import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 3e-5


def keys(d):
    d, a = abs(d), -0.75
    return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0


def brought_back(at, extent, padding, corners):
    """A tap's place in the map, and whether it counts."""
    inside = min(max(at, 0), extent - 1)
    if padding != "reflection":
        return inside, padding == "border" or at == inside
    low, span = (0, extent - 1) if corners else (-0.5, extent)
    phase = (at - low) % (2 * span) if span else 0
    return int(low + min(phase, 2 * span - phase)), True


def sample(x, grid, mode, padding, corners):
    extents, reach = x.shape[2:], {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[mode]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n in range(x.shape[0]):
        for place in np.ndindex(grid.shape[1:-1]):
            g = grid[n][place][::-1].astype(np.float64)
            at = [(v + 1) / 2 * (e - 1) if corners else ((v + 1) * e - 1) / 2 for v, e in zip(g, extents)]
            for steps in itertools.product(reach, repeat=len(extents)):
                taps = [int(np.rint(a)) if mode == "nearest" else int(np.floor(a)) + s for a, s in zip(at, steps)]
                weigh = {"nearest": lambda d: 1.0, "linear": lambda d: 1 - abs(d), "cubic": keys}[mode]
                weight = np.prod([weigh(a - t) for a, t in zip(at, taps)])
                back = [brought_back(t, e, padding, corners) for t, e in zip(taps, extents)]
                if all(b[1] for b in back):
                    out[n, :, *place] += weight * x[n, :, *(b[0] for b in back)]
    return out.astype(np.float32)


def cases(rng):
    """Coordinates lie on no tie, in the map, beside its border and far beyond."""
    for extents, points in (((7,), (9,)), ((5, 6), (4, 5)), ((3, 4, 5), (2, 3, 2)), ((1, 4), (3, 3))):
        x = rng.standard_normal((2, 3, *extents)).astype(np.float32)
        grid = rng.uniform(-1, 1, (2, *points, len(extents))) * rng.choice([0.9, 1.2, 3.0], (2, *points, 1))
        for mode, padding, corners in itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
            if 1 in extents and corners and padding == "reflection":
                continue   # nothing to reflect between
            yield x, grid.astype(np.float32), mode, padding, corners


def run(tilewright, work, model, feeds):
    path, artifact, out = work / "m.onnx", work / "m.so", work / "out"
    onnx.save(model, path)
    np.savez(work / "in.npz", **feeds)
    for command in ([tilewright, "compile", path, "-t", "host", "-o", artifact], [tilewright, "run", artifact, *(["--input", work / "in.npz"] if feeds else []), "--output-dir", out]):
        told = subprocess.run(command, capture_output=True, text=True)
        if told.returncode:
            sys.exit(f"{' '.join(map(str, command))}: {told.stderr}")
    return {file.stem: np.load(file) for file in out.glob("*.npy")}


def check(tilewright, every, way):
    nodes, given, constants, outputs, feeds = [], [], [], [], {}
    for i, (x, grid, mode, padding, corners) in enumerate(every):
        nodes.append(helper.make_node("GridSample", [f"x{i}", f"g{i}"], [f"y{i}"], mode=mode, padding_mode=padding, align_corners=corners))
        for name, array, known in ((f"x{i}", x, way == "all known"), (f"g{i}", grid, way != "computed")):
            if known:
                constants.append(numpy_helper.from_array(array, name))
            else:
                given.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape))
                feeds[name] = array
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None))
    model = helper.make_model(helper.make_graph(nodes, "grid_sample", given, outputs, constants), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with tempfile.TemporaryDirectory() as folder:
        got = run(tilewright, pathlib.Path(folder), model, feeds)
    failed = 0
    for i, (x, grid, mode, padding, corners) in enumerate(every):
        want = sample(x, grid, mode, padding, corners)
        off = np.abs(got[f"y{i}"] - want).max() if got[f"y{i}"].shape == want.shape else np.inf
        if not off <= TOLERANCE * np.abs(want).max():
            failed += 1
            print(f"{way}: {list(x.shape)} at {list(grid.shape)}, {mode}, {padding}, align_corners={corners}: off by {off:.2g}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    every = list(cases(np.random.default_rng(4)))
    ways = ("computed", "grid known", "all known")
    failed = sum(check(args.tilewright.resolve(), every, way) for way in ways)
    print(f"{len(every)} cases in {len(ways)} ways, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
