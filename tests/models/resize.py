#!/usr/bin/env python3
"""Resize in every combination of its attributes, at several opsets, against onnxruntime: with scales and sizes as constants, with both as inputs,
and with constants only, which the compiler's evaluator computes. Coordinates of sizes are exact quotients, as fractions say here: onnxruntime takes
those of a float32 scale.

    resize.py --tilewright BUILD/tilewright [--opset N] [--full]

Without --full each combination has two of the sizes, and one where they are inputs.
"""
import argparse
import fractions
import itertools
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSETS = (10, 11, 13, 18, 19)
SHAPE = (1, 1, 5, 7)
SCALES = [(2, 3), (0.6, 0.8), (1.3, 0.5), (0.34, 2.5), (0.2, 2)]
SIZES = [(8, 3), (1, 14), (4, 10)]
REGION = [0, 0, 0.15, 0.21, 1, 1, 0.8, 1.3]   # no coordinate on a tie; no extent stays, as onnxruntime then takes no region
TOLERANCE = 2e-5   # of the largest number; nearest is exact
WAYS = ("sizes known", "sizes computed", "all known")
HALF = fractions.Fraction(1, 2)
# In many of these the coordinates lie on whole numbers or on halves.
EXACT = [(20, 6), (30, 18), (50, 15), (7, 21), (12, 18), (35, 14), (9, 6), (1, 4), (13, 1), (100, 30)]


def coordinate_modes(opset):
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
    return modes + (["tf_half_pixel_for_nn"] if opset < 13 else []) + (["half_pixel_symmetric"] if opset >= 19 else [])


def attributes(opset):
    if opset < 11:
        yield from ({"mode": mode} for mode in ("nearest", "linear"))
        return
    for coordinates in coordinate_modes(opset):
        shared = {"coordinate_transformation_mode": coordinates}
        if coordinates == "tf_crop_and_resize":
            shared["extrapolation_value"] = 9.0
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            yield {"mode": "nearest", "nearest_mode": nearest, **shared}
        for antialias in (0, 1) if opset >= 18 and coordinates != "tf_crop_and_resize" else (0,):
            more = {"antialias": 1} if antialias else {}
            yield {"mode": "linear", **shared, **more}
            for outside, a in itertools.product((0, 1), (-0.75, -0.5)):
                yield {"mode": "cubic", "exclude_outside": outside, "cubic_coeff_a": a, **shared, **more}


class Case:
    def __init__(self, name, opset, attributes, scales, sizes):
        self.name, self.attributes, self.scales = name, attributes, scales
        crop = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        roi = np.array(REGION if crop else [], np.float32)
        self.lists = {}   # input -> array
        if opset < 11:
            self.lists = {1: np.array((1, 1, *scales), np.float32)}
        else:
            self.lists = {1: roi, 2: np.array((1, 1, *scales) if scales else [], np.float32)}
            if sizes:
                self.lists[3] = np.array((1, 1, *sizes), np.int64)

    def node(self):
        return helper.make_node("Resize", ["x", *(f"{self.name}_{i}" for i in self.lists)], [self.name], self.name, **self.attributes)

    def inputs(self):
        return {f"{self.name}_{i}": array for i, array in self.lists.items()}

    def text(self):
        return f"{self.attributes} {({i: a.tolist() for i, a in self.lists.items() if a.size})}"


def compared(attributes, scales):
    """Where an extent times its scale is no whole number, onnxruntime divides by the extent in these modes and the standard by the product."""
    mode = attributes.get("coordinate_transformation_mode")
    return mode not in ("align_corners", "tf_crop_and_resize") or not scales or all(abs(n * s - round(n * s)) < 1e-4 for n, s in zip(SHAPE[2:], scales))


def cases(opset):
    for number, (chosen, (scales, sizes)) in enumerate(itertools.product(attributes(opset), [(s, None) for s in SCALES] + ([(None, s) for s in SIZES] if opset > 10 else []))):
        yield Case(f"y{number}", opset, chosen, scales, sizes)


def model_of(opset, some, x, way):
    """Lists are inputs where they are computed; empty ones are absent inputs' stand-ins and stay."""
    given, constants = [], []
    for case in some:
        for name, array in case.inputs().items():
            if way == "sizes computed" and array.size:
                given.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
            else:
                constants.append(numpy_helper.from_array(array, name))
    if way == "all known":
        constants.append(numpy_helper.from_array(x, "x"))
    else:
        given.insert(0, helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape))
    outputs = [helper.make_tensor_value_info(case.name, TensorProto.FLOAT, [f"{case.name}_{i}" for i in range(4)]) for case in some]
    graph = helper.make_graph([case.node() for case in some], "resize", given, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def reference(opset, case, x):
    """onnxruntime's result; None where it refuses."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model_of(opset, [case], x, "sizes known").SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": x})[0]
    except Exception:   # onnxruntime's own kinds of error share no other base
        return None


def run(tilewright, work, model, feeds):
    path, artifact, out = work / "m.onnx", work / "m.so", work / "out"
    onnx.save(model, path)
    np.savez(work / "in.npz", **feeds)
    for command in ([tilewright, "compile", path, "-t", "host", "-o", artifact], [tilewright, "run", artifact, *(["--input", work / "in.npz"] if feeds else []), "--output-dir", out]):
        told = subprocess.run(command, capture_output=True, text=True)
        if told.returncode:
            sys.exit(f"{' '.join(map(str, command))}: {told.stderr}")
    return {file.stem: np.load(file) for file in out.glob("*.npy")}


def differs(case, got, want):
    if got.shape != want.shape:
        return f"shape {got.shape} for {want.shape}"
    limit = 0 if case.attributes["mode"] == "nearest" else TOLERANCE * np.abs(want).max()
    off = np.abs(got - want)
    return "" if (off <= limit).all() else f"{got.ravel()[off.argmax()]} for {want.ravel()[off.argmax()]} at {off.argmax()}"


def check(tilewright, opset, x, full):
    failed, every = 0, []
    sizes = len(SCALES) + (len(SIZES) if opset > 10 else 0)
    for number, case in enumerate(cases(opset)):
        combination, size = divmod(number, sizes)
        step = 0 if full else (size - combination) % sizes   # each combination begins with another size
        if step < 2 and compared(case.attributes, case.scales) and (want := reference(opset, case, x)) is not None:
            every.append((case, want, step))
    for way in WAYS:
        asked = [(case, want) for case, want, step in every if step == 0 or way != "sizes computed"]
        with tempfile.TemporaryDirectory() as folder:
            some = [case for case, _ in asked]
            feeds = {"x": x, **{name: array for case in some for name, array in case.inputs().items() if array.size and way == "sizes computed"}}
            got = run(tilewright, pathlib.Path(folder), model_of(opset, some, x, way), {} if way == "all known" else feeds)
        for case, want in asked:
            if told := differs(case, got[case.name], want):
                failed += 1
                print(f"opset {opset}, {way}: {case.text()}: {told}")
    print(f"opset {opset}: {len(every)} cases in {len(WAYS)} ways, {failed} differ", flush=True)
    return failed


def coordinate(mode, at, extent, size):
    """Of an element of a resized axis, in the input."""
    scale = fractions.Fraction(size, extent)
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        return fractions.Fraction(at * (extent - 1), size - 1) if size > 1 else fractions.Fraction(0)
    if mode == "pytorch_half_pixel" and size == 1:
        return fractions.Fraction(0)
    return (at + HALF) / scale - (0 if mode == "tf_half_pixel_for_nn" else HALF)


def taps(attributes, x):
    """Places and weights at a coordinate."""
    left = math.floor(x)
    if attributes["mode"] == "nearest":
        rounded = {"floor": left, "ceil": math.ceil(x), "round_prefer_floor": math.ceil(x - HALF), "round_prefer_ceil": math.floor(x + HALF)}
        return [(rounded[attributes["nearest_mode"]], 1.0)]
    if attributes["mode"] == "linear":
        return [(left, float(1 - x + left)), (left + 1, float(x - left))]
    a = -0.75
    weight = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return [(left + k, weight(abs(float(x - left - k)))) for k in range(-1, 3)]


def check_exact(tilewright, opset):
    """Sizes, along one axis."""
    some, rng = [], np.random.default_rng(9)
    for number, (chosen, (extent, size)) in enumerate(itertools.product(attributes(opset), EXACT)):
        mode = chosen["coordinate_transformation_mode"]
        if mode == "tf_crop_and_resize" or "antialias" in chosen or chosen.get("exclude_outside") or chosen.get("cubic_coeff_a", -0.75) != -0.75:
            continue
        case = Case(f"z{number}", opset, chosen, None, (1, size))
        case.x = rng.permutation(extent).astype(np.float32).reshape(1, 1, 1, extent)
        want = [sum(w * case.x.ravel()[min(max(p, 0), extent - 1)] for p, w in taps(chosen, coordinate(mode, i, extent, size))) for i in range(size)]
        some.append((case, np.array(want, np.float32).reshape(1, 1, 1, size)))
    failed = 0
    for way in WAYS:
        asked = some[::4] if way == "sizes computed" else some   # whose compiles take longest
        nodes, given, constants, feeds = [], [], [], {}
        for case, _ in asked:
            node = case.node()
            node.input[0] = case.name + "_x"
            nodes.append(node)
            for name, array in {node.input[0]: case.x, **case.inputs()}.items():
                if array.size and (way == "sizes computed" or way == "sizes known" and name.endswith("x")):
                    given.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
                    feeds[name] = array
                else:
                    constants.append(numpy_helper.from_array(array, name))
        outputs = [helper.make_tensor_value_info(case.name, TensorProto.FLOAT, [f"{case.name}_{i}" for i in range(4)]) for case, _ in asked]
        model = helper.make_model(helper.make_graph(nodes, "exact", given, outputs, constants), opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        with tempfile.TemporaryDirectory() as folder:
            got = run(tilewright, pathlib.Path(folder), model, feeds)
        for case, want in asked:
            if told := differs(case, got[case.name], want):
                failed += 1
                print(f"opset {opset}, exact, {way}: {case.x.size} -> {case.lists[3][-1]}, {case.attributes}: {told}")
    print(f"opset {opset}: {len(some)} exact cases in {len(WAYS)} ways, {failed} differ", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--opset", type=int, choices=OPSETS)
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    x = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
    opsets = [args.opset] if args.opset else OPSETS
    failed = sum([check(args.tilewright.resolve(), opset, x, args.full) for opset in opsets])
    failed += sum([check_exact(args.tilewright.resolve(), opset) for opset in opsets if opset in (11, 19)])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
