#!/usr/bin/env python3
"""Small models that were once compiled wrong, or not at all (the folder reports/), with the values that are right: on this machine, and by
emulators on AArch64 and ARMv7. `verify` has to agree.

    reports.py --tilewright BUILD/tilewright [--only NAME,NAME] [--host]
"""
import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "boards"))
from emulators import EMULATORS  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent / "reports"
EMULATED = ["aarch64-generic", "armv7-generic"]
NAN = np.float32("nan")
MISMATCH, NOTHING_BUT_NAN = 4, "are NaN in both"   # such an output says nothing to `verify`, and is right here
REPORTS = {}


def report(fn):
    REPORTS[fn.__name__] = fn
    return fn


def weight(model, name):
    return next(numpy_helper.to_array(t) for t in model.graph.initializer if t.name == name)


def by_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


# Each gives runs: the inputs, the right outputs, and how far off one may be.

@report
def function_default(model, rng):
    yield {"x": np.array([-1, -2, 3], np.float32)}, {"y": np.array([-0.125, -0.25, 3], np.float32)}, 0


@report
def nan_folded(model, rng):
    yield {"x": np.array([2], np.float32)}, {**{name: np.array([NAN]) for name in "abdefg"}, "y": np.array([3], np.float32)}, 0


@report
def nan_chain(model, rng):
    x = rng.standard_normal((1, 1, 6, 6)).astype(np.float32)
    yield {"x": x}, {"y": np.maximum(x, 0).max(keepdims=True)}, 0
    for place in ((0, 0), (2, 3), (5, 5)):
        spoilt = x.copy()
        spoilt[0, 0, place[0], place[1]] = NAN
        yield {"x": spoilt}, {"y": np.full((1, 1, 1, 1), NAN)}, 0


def keys(d):
    d, a = np.abs(d), -0.75
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, np.where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, 0))


def brought_back(at, extent, padding, corners):
    """A tap's place in the map, and whether it counts."""
    if padding == "zeros":
        return min(max(at, 0), extent - 1), 0 <= at < extent
    if padding == "border":
        return min(max(at, 0), extent - 1), True
    low, span = (0, extent - 1) if corners else (-0.5, extent)
    phase = (at - low) % (2 * span)
    return int(low + min(phase, 2 * span - phase)), True


def cubic_sample(x, grid, padding, corners):
    extents = x.shape[2:]
    out = np.zeros(grid.shape[1:-1])
    for place in np.ndindex(out.shape):
        g = grid[0][place][::-1].astype(np.float64)
        at = [(v + 1) / 2 * (e - 1) if corners else ((v + 1) * e - 1) / 2 for v, e in zip(g, extents)]
        for offsets in itertools.product(range(-1, 3), repeat=len(extents)):
            taps = [int(np.floor(a)) + o for a, o in zip(at, offsets)]
            weights = np.prod([keys(a - t) for a, t in zip(at, taps)])
            back = [brought_back(t, e, padding, corners) for t, e in zip(taps, extents)]
            out[place] += weights * x[0, 0][tuple(b[0] for b in back)] * all(b[1] for b in back)
    return out[None, None].astype(np.float32)


@report
def grid_sample_cubic(model, rng):
    x, g = rng.standard_normal((1, 1, 5, 6)).astype(np.float32), rng.uniform(-1.7, 1.7, (1, 1, 9, 2)).astype(np.float32)
    g[0, 0, 0] = (0.3, 1.15)   # beyond the border, where a clamped point gives another value than clamped taps
    modes = [(padding, corners) for padding in ("border", "zeros", "reflection") for corners in (0, 1)]
    yield {"x": x, "g": g}, {f"{p}{c}": cubic_sample(x, g, p, c) for p, c in modes}, 2e-5


@report
def matmul_of_nothing(model, rng):
    yield {"k": np.zeros((3, 0), np.float32)}, {"y": np.zeros((3, 5), np.float32)}, 0


@report
def constant_rows(model, rng):
    rows = np.array([5, -7, 1024, 0.5, -3, 96], np.float32)   # whose sums are exact
    yield {"x": np.repeat(rows[:, None], 768, 1)}, {"y": np.tile(weight(model, "b"), (6, 1))}, 0


@report
def lstm_lengths(model, rng):
    for steps in (4, 7, 1):
        feeds = {"X": rng.standard_normal((steps, 3, 3)).astype(np.float32), "L": rng.integers(1, steps + 1, 3).astype(np.int32)}
        yield feeds, by_onnxruntime(model, feeds), 1e-5


@report
def no_shape(model, rng):
    x = rng.standard_normal((2, 3)).astype(np.float32)
    yield {"x": x}, {"y": np.maximum(x, 0)}, 0


@report
def qdq_add_ties(model, rng):
    x = np.arange(-128, 128).astype(np.int8)
    real = (x.astype(np.float32) + 25) * np.float32(0.03125)
    y = np.clip(np.rint((real + real) / np.float32(0.05)) + 1, -128, 127).astype(np.int8)   # the zero point comes after rounding
    yield {"x": x}, {"y": y}, 0


@report
def qdq_conv_pool(model, rng):
    for _ in range(20):
        feeds = {"x": rng.integers(-128, 128, (1, 16, 3, 3)).astype(np.int8)}
        yield feeds, by_onnxruntime(model, feeds), float(weight(model, "so"))


@report
def qdq_conv_pool_pool(model, rng):
    shapes = {"t19": (1, 4, 4, 6), "t23": (4, 1, 4, 4), "t26": (4,)}
    for _ in range(20):
        feeds = {name: (rng.standard_normal(shape) * 0.2).astype(np.float32) for name, shape in shapes.items()}
        yield feeds, by_onnxruntime(model, feeds), 1


def told(process):
    return f"ends with {process.returncode}: {((process.stderr or process.stdout).strip().splitlines() or [''])[-1][:200]}"


def differs(got, want, limit):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    off = np.abs(got.astype(np.float64) - want.astype(np.float64))
    fine = (off <= limit * 1.001) | (np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64)))
    return "" if fine.all() else f"{got.ravel()[~fine.ravel()][0]} for {want.ravel()[~fine.ravel()][0]} at {int((~fine).ravel().argmax())}"


def run_on(tilewright, target, library, feeds, outputs, work):
    """The outputs, or what went wrong."""
    out = work / "out"
    if target in EMULATORS:
        flags = []
        for name, value in feeds.items():
            np.save(work / f"in_{name}.npy", value)
            flags += ["--input", f"{name}={work / f'in_{name}.npy'}"]
        ran = subprocess.run([*EMULATORS[target], library.with_suffix(".run"), "run", *flags, "--output-dir", out], capture_output=True, text=True)
    else:
        np.savez(work / "in.npz", **feeds)
        ran = subprocess.run([tilewright, "run", library, "--input", work / "in.npz", "--output-dir", out], capture_output=True, text=True)
    return told(ran) if ran.returncode else {name: np.load(out / f"{name}.npy") for name in outputs}


def failure(tilewright, name, target, work):
    """What is wrong, in a line; empty: nothing."""
    path, library = FOLDER / f"{name}.onnx", work / "m.so"
    model = onnx.load(path)
    runner = ["--with-runner"] if target in EMULATORS else []
    compiled = subprocess.run([tilewright, "compile", path, "-t", target, "-j", "1", "-o", library, *runner], capture_output=True, text=True)
    if compiled.returncode:
        return f"compile {told(compiled)}"
    for feeds, want, limit in REPORTS[name](model, np.random.default_rng(11)):
        got = run_on(tilewright, target, library, feeds, list(want), work)
        wrong = got if isinstance(got, str) else next((f"{o} is {t}" for o in want if (t := differs(got[o], want[o], limit))), "")
        if wrong:
            return wrong
        if target not in EMULATORS:
            checked = subprocess.run([tilewright, "verify", library, path, "--input", work / "in.npz"], capture_output=True, text=True)
            off = [line for line in checked.stdout.splitlines() if line.startswith("OFF") and NOTHING_BUT_NAN not in line]
            if off or checked.returncode not in (0, MISMATCH):
                return f"verify {told(checked)}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--host", action="store_true")
    args = parser.parse_args()
    missing = {p.stem for p in FOLDER.glob("*.onnx")} ^ set(REPORTS)
    assert not missing, f"without a file or without values: {missing}"
    bad = 0
    for name in args.only.split(",") if args.only else sorted(REPORTS):
        for target in ["host"] if args.host else ["host", *EMULATED]:
            with tempfile.TemporaryDirectory() as work:
                wrong = failure(args.tilewright.resolve(), name, target, pathlib.Path(work))
            bad += bool(wrong)
            print(f"{'FAILED' if wrong else 'ok':9}{name} on {target}{': ' + wrong if wrong else ''}", flush=True)
    print(f"{len(REPORTS)} reports, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
