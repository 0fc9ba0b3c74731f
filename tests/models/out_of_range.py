#!/usr/bin/env python3
"""Positions, axes, lengths and counts that only the run knows: those in range give onnxruntime's values, those out of range
end the run with the node's name, in the library and in the evaluator alike. None is taken silently.

    out_of_range.py --tilewright BINARY [--target host]
"""
import argparse
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper as h
from onnx.reference import ReferenceEvaluator

from run_library import run_library

LONGEST, SHORTEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32}


@dataclasses.dataclass
class Case:
    name: str
    nodes: list          # make "y" of "p", the positions, and others
    others: dict         # input name -> array
    inside: list         # what p may be
    outside: list        # what it may not be
    kind: type = np.int64
    free: tuple = ()     # y's extents that p decides
    rank: int = 1        # y's
    dtype: int = TensorProto.FLOAT
    version: int = 20
    says: str = ""       # of the library's message for each of `outside`; {} is the number that is out of range


def node(op, inputs, outputs="y", domain="", **attributes):
    return h.make_node(op, inputs.split(), outputs.split(), f"the_{op.lower()}", domain=domain, **attributes)


def rows(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def recurrent(op, gates):
    rng = np.random.default_rng(3)
    w = {"x": rows(3, 2, 2) / 10, "w": rng.random((1, gates * 2, 2), np.float32), "r": rng.random((1, gates * 2, 2), np.float32)}
    return Case(op, [h.make_node(op, ["x", "w", "r", "", "p"], ["y"], f"the_{op.lower()}", hidden_size=2)], w,
                [[3, 1], [2, 3]] + ([[0, 3]] if op == "LSTM" else []), [[4, 1], [-1, 1], [1 << 30, 1]], np.int32, rank=4, says="length {}, expected 0 to 3")


def sequence(op, inputs, inside, outside):
    parts = [node("SequenceConstruct", "a b c", "s"), node(op, inputs, "t")]
    end = [node("Identity", "t", "y")] if op == "SequenceAt" else [node("ConcatFromSequence", "t", "y", axis=0)]
    return Case(op, parts + end, {"a": rows(2), "b": rows(2) + 5, "c": rows(2) + 9, **({"d": rows(2) + 20} if " d " in inputs else {})}, inside, outside, says="position {}, expected -3 to")


def cases():
    x = {"x": rows(3, 4)}
    far = [LONGEST, SHORTEST, 1 << 31, -(1 << 33)]
    yield Case("Gather", [node("Gather", "x p", axis=1)], x, [[0, -4, 3]], [[4], [-5], *[[v] for v in far]], rank=2)
    yield Case("GatherElements", [node("GatherElements", "x p", axis=1)], x, [[[0, -4, 3]]], [[[4]], [[-5]], *[[[v]] for v in far]], rank=2)
    yield Case("GatherND", [node("GatherND", "x p")], x, [[[2, -4]]], [[[0, 4]], [[3, 0]], [[-4, 0]], *[[[0, v]] for v in far]])
    yield Case("ScatterElements", [node("ScatterElements", "x p u", axis=1)], {**x, "u": rows(1, 1) + 50}, [[[3]], [[-4]]], [[[4]], [[-5]], *[[[v]] for v in far]], rank=2)
    yield Case("ScatterND", [node("ScatterND", "x p u")], {**x, "u": rows(1) + 50}, [[[2, 3]], [[-3, -4]]], [[[0, 4]], [[3, 0]], [[-4, 0]], *[[[0, v]] for v in far]], rank=2)
    yield Case("ArrayFeatureExtractor", [node("ArrayFeatureExtractor", "x p", domain="ai.onnx.ml")], x, [[0, 3]], [[4], *[[v] for v in far]], rank=2)
    for op in ("CumSum", "CumProd"):
        yield Case(op, [node(op, "x p")], x, [0, 1, -1, -2], [2, -3, *far], rank=2, says="axis {}, expected -2 to 1")
    yield Case("CumSum of one", [node("CumSum", "x p")], {"x": rows(1) + 1}, [0, -1], [1, -2, *far], says="axis {}, expected -1 to 0")
    stft = {"x": rows(1, 16, 1), "window": np.ones(8, np.float32)}
    yield Case("STFT", [node("STFT", "x p window")], stft, [2, 4], [0, -1], rank=4, free=("a", "n", "m", "c"), says="frame step {}, expected 1 to")
    yield Case("STFT by lengths", [h.make_node("STFT", ["x", "two", "", "p"], ["y"], "the_stft")], {"x": rows(1, 16, 1), "two": np.array(2)}, [8, 16], [0, -1, 17], rank=4, free=("a", "n", "m", "c"), says="frame length {}, expected 1 to 16")
    for op in ("ReduceSum", "ReduceMax", "ReduceMean"):
        for keep in (0, 1):
            yield Case(f"{op} keepdims={keep}", [node(op, "x p", keepdims=keep)], x, [[0], [-1]], [[2], [-3], *[[v] for v in far]], rank=1 + keep, free=("n", "m")[:1 + keep])
    yield Case("ReduceSum of two", [node("ReduceSum", "x p")], {"x": rows(2, 3, 4)}, [[0, 2], [-1, 1]], [[0, 0], [1, -2], [0, 3]], rank=3, free=("n", "m", "k"))
    yield Case("Squeeze", [node("Squeeze", "x p")], {"x": rows(1, 3, 1)}, [[0], [-1]], [[1], [3], [-4], *[[v] for v in far]], rank=2, free=("n", "m"))
    yield Case("Unsqueeze", [node("Unsqueeze", "x p")], {"x": rows(3)}, [[0], [-1]], [[2], [-3], *[[v] for v in far]], rank=2, free=("n", "m"), says="axis {}, expected -2 to 1")
    pads = h.make_node("Constant", [], ["two"], value=h.make_tensor("", TensorProto.INT64, [2], [1, 1]))
    yield Case("Pad", [pads, node("Pad", "x two zero p")], {**x, "zero": np.array(0, np.float32)}, [[0], [-1]], [[2], [-3], *[[v] for v in far]], rank=2, free=("n", "m"))
    yield sequence("SequenceAt", "s p", [0, 2, -3], [3, -4, -5, *far])
    yield sequence("SequenceErase", "s p", [0, 2, -3], [3, -4, -5, *far])
    yield sequence("SequenceInsert", "s d p", [0, 2, 3, -3], [4, -4, -5, *far])
    scores = {"x": rows(3, 4) / 7}
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        for reduction in ("none", "mean"):
            rank = 1 if reduction == "none" else 0
            yield Case(f"{op} {reduction}", [node(op, "x p", reduction=reduction)], scores, [[0, 3, 1]], [[0, 4, 1], [0, -1, 1], *[[v, 0, 0] for v in far]], rank=rank)
            yield Case(f"{op} {reduction} ignore", [node(op, "x p w", reduction=reduction, ignore_index=-7)], {**scores, "w": rows(4)}, [[0, 3, 1], [-7, 2, 3]], [[-7, 4, 1], [0, -1, 1]], rank=rank)
    yield recurrent("LSTM", 4)
    yield recurrent("GRU", 3)
    yield recurrent("RNN", 1)
    yield Case("ReverseSequence", [node("ReverseSequence", "x p")], {"x": rows(4, 2)}, [[1, 4], [2, 3]], [[5, 1], [1, -1], *[[v, 1] for v in far]], rank=2)
    yield Case("RoiAlign", [node("RoiAlign", "x r p", output_height=2, output_width=2, sampling_ratio=2)], {"x": rows(2, 1, 4, 4), "r": np.array([[0, 0, 3, 3]], np.float32)}, [[0], [1]], [[2], [-1], *[[v] for v in far]], rank=4, says="image {}, expected 0 to 1")
    yield Case("MaxRoiPool", [node("Cast", "p", "f", to=1), node("MaxRoiPool", "x f", pooled_shape=[2, 2])], {"x": rows(2, 1, 4, 4)}, [[[1, 0, 0, 3, 3]], [[0, 0, 0, 3, 3]]], [[[2, 0, 0, 3, 3]], [[-1, 0, 0, 3, 3]]], rank=4)
    yield Case("TopK", [node("TopK", "x p", "y i")], x, [[1], [4]], [[5], [-1], *[[v] for v in far]], rank=2, free=("n", "m"))
    yield Case("Split", [node("Split", "x p", "y z", axis=1)], x, [[1, 3], [4, 0]], [[2, 3], [-1, 5], [1, 2], [LONGEST, 5]], rank=2, free=("n", "m"))
    yield Case("DFT", [node("DFT", "x len p")], {"x": rows(1, 4, 4, 1), "len": np.array(4)}, [1, 2, -2], [3, -1, 4, -5, *far], rank=4)
    for axes in ([0], [1], [-2]):
        both = {**x, "from": np.array([1]), "to": np.array([3]), "step": np.array([1])}
        yield Case(f"Slice along {axes}", [node("Slice", "x from to p step")], both, [axes], [[2], [-3], *[[v] for v in far]], rank=2, free=("n", "m"), says="axis {}, expected -2 to 1")
    pair = {**x, "from": np.array([1, 1]), "to": np.array([3, 2])}
    yield Case("Slice along two", [node("Slice", "x from to p")], pair, [[0, 1], [-1, 0]], [[0, 0], [1, -1], [0, 2]], rank=2, free=("n", "m"))
    yield Case("Slice by a step", [node("Slice", "x from to axis p")], {**x, "from": np.array([0]), "to": np.array([9]), "axis": np.array([1])}, [[1], [3], [-1]], [[0]], rank=2, free=("n", "m"), says="a step of 0")
    again = h.make_graph([h.make_node("Identity", ["go"], ["on"]), h.make_node("Add", ["a", "a"], ["b"])], "body",
                         [h.make_tensor_value_info("i", TensorProto.INT64, []), h.make_tensor_value_info("go", TensorProto.BOOL, []), h.make_tensor_value_info("a", TensorProto.FLOAT, [3, 4])],
                         [h.make_tensor_value_info("on", TensorProto.BOOL, []), h.make_tensor_value_info("b", TensorProto.FLOAT, [3, 4])])
    yield Case("Loop", [h.make_node("Loop", ["p", "", "x"], ["y"], "the_loop", body=again)], x, [3, 0, -1, SHORTEST], [], rank=2)
    yield Case("Trilu", [node("Trilu", "x p")], x, [0, 1, -2, 50, -50], [], rank=2)
    yield Case("Compress", [node("Cast", "p", "b", to=9), node("Compress", "x b", axis=1)], x, [[1, 0, 1], [0, 0, 0, 1]], [[0, 0, 0, 0, 1]], rank=2, free=("n", "m"))
    yield Case("Range", [node("Range", "zero five p")], {"zero": np.array(0), "five": np.array(5)}, [1, 2, -1], [0], free=("n",), dtype=TensorProto.INT64, says="a delta of 0")
    nan, inf = float("nan"), float("inf")
    yield Case("Range of floats", [node("Range", "zero p one")], {"zero": np.array(0, np.float32), "one": np.array(1, np.float32)}, [2.5, 0, -3], [nan, inf], np.float32, free=("n",), says="no length")
    yield Case("Range by floats", [node("Range", "zero one p")], {"zero": np.array(0, np.float32), "one": np.array(1, np.float32)}, [0.3, 2, -1], [0, nan], np.float32, free=("n",))
    yield Case("Resize", [node("Resize", "x none p", mode="linear")], {"x": rows(2, 3), "none": np.zeros(0, np.float32)}, [[1, 2], [2, .5]], [[1, 0], [nan, 1], [-1, 1], [1, inf], [1, 1e9]], np.float32, rank=2, free=("n", "m"), says="a scale that is not above 0")
    yield Case("Upsample", [node("Upsample", "x p")], {"x": rows(2, 3)}, [[1, 2], [2, 3]], [[1, 0], [nan, 1], [1, inf]], np.float32, rank=2, free=("n", "m"), version=9)
    pair = h.make_node("Constant", [], ["two"], value=h.make_tensor("", TensorProto.FLOAT, [2], [3, 5]))
    yield Case("OneHot", [pair, node("OneHot", "at p two")], {"at": np.array([0, 1, -1])}, [[2], [5]], [[0], [-1], [LONGEST], [SHORTEST], [1 << 41]], rank=2, free=("n", "m"), says="depth {}, expected 1 to")
    yield Case("ConstantOfShape", [node("ConstantOfShape", "p")], {}, [[2], [0]], [[-1], [LONGEST], [SHORTEST]], free=("n",))
    yield Case("Tile", [node("Tile", "x p")], x, [[1, 2], [0, 1]], [[-1, 1], [1, LONGEST], [SHORTEST, 1]], rank=2, free=("n", "m"))
    yield Case("Expand", [node("Expand", "x p")], {"x": rows(1)}, [[3], [1]], [[-1], [LONGEST], [SHORTEST]], free=("n",))
    yield Case("Reshape", [node("Reshape", "x p")], x, [[6, 2], [-1, 3], [0, 4]], [[5, 2], [-1, 5], [-2, 6], [-1, -1], [LONGEST, 2]], rank=2, free=("n", "m"))
    yield Case("MaxUnpool", [node("MaxUnpool", "x p", kernel_shape=[2], strides=[2])], {"x": rows(1, 1, 2)}, [[[[0, 3]]]], [[[[4, 0]]], [[[-1, 0]]], *[[[[v, 0]]] for v in far]], rank=3)


def model_of(case):
    inputs = {**case.others, "p": np.array(case.inside[0], case.kind)}
    # the shape of p is that of each value: one model for each shape
    values = [h.make_tensor_value_info(k, TYPES[v.dtype], v.shape) for k, v in inputs.items()]
    shape = list(case.free) or [None] * case.rank
    graph = h.make_graph(case.nodes, "g", values, [h.make_tensor_value_info("y", case.dtype, shape if case.rank else [])])
    version = 26 if case.name == "CumProd" else case.version
    return h.make_model(graph, ir_version=10, opset_imports=[h.make_opsetid("", version), h.make_opsetid("ai.onnx.ml", 3)])


def expected_of(model, feeds):
    """onnxruntime's, or of ONNX's reference for what it has not."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except (onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented, onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        return ReferenceEvaluator(model).run(["y"], feeds)[0]
    return session.run(["y"], feeds)[0]


class Checker:
    def __init__(self, tilewright, target, work):
        self.tilewright, self.target, self.work = tilewright, target, work
        self.compared = self.refused = 0
        self.wrong = []

    def compiled(self, case, model):
        onnx.save(model, self.work / "m.onnx")
        command = [self.tilewright, "compile", self.work / "m.onnx", "-t", self.target, "-o", self.work / "m.so"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            self.wrong.append(f"{case.name}: not compiled: {done.stderr.strip()}")
        return done.returncode == 0

    def ways(self, feeds):
        for what in ("m.so", "m.onnx"):
            yield what, *run_library(self.tilewright, self.work / what, feeds, ["y"], self.work)

    def inside(self, case, model, value):
        feeds = {**case.others, "p": np.array(value, case.kind)}
        want = expected_of(model, feeds)
        for what, done, got in self.ways(feeds):
            self.compared += 1
            if got is None:
                self.wrong.append(f"{case.name} {value} {what}: {done.stderr.strip()}")
            elif got["y"].shape != want.shape or not np.allclose(got["y"], want, atol=1e-5):
                self.wrong.append(f"{case.name} {value} {what}: {got['y'].tolist()}, expected {want.tolist()}")

    def outside(self, case, value):
        for what, done, got in self.ways({**case.others, "p": np.array(value, case.kind)}):
            self.refused += 1
            if got is not None:
                self.wrong.append(f"{case.name} {value} {what}: taken, y = {got['y'].tolist()}")
            elif done.returncode < 0 or done.returncode > 7:
                self.wrong.append(f"{case.name} {value} {what}: exit {done.returncode}")
            elif what == "m.so" and "the_" not in done.stderr:
                self.wrong.append(f"{case.name} {value} {what}: names no node: {done.stderr.strip()}")
            elif what == "m.so" and case.says.format(*np.ravel(value)) not in done.stderr:
                self.wrong.append(f"{case.name} {value} {what}: '{done.stderr.strip()}', not '{case.says}'")

    def check(self, case):
        shapes = {}
        for which, values in enumerate((case.inside, case.outside)):
            for value in values:
                shapes.setdefault(np.shape(value), ([], []))[which].append(value)
        for shape, (inside, outside) in shapes.items():
            first = (inside + outside)[0]
            model = model_of(dataclasses.replace(case, inside=[first]))
            if not self.compiled(case, model):
                continue
            for value in inside:
                self.inside(case, model, value)
            for value in outside:
                self.outside(case, value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--only", default="", help="cases whose names begin so")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(given.tilewright.resolve(), given.target, pathlib.Path(folder))
        count = 0
        for case in cases():
            if case.name.startswith(given.only):
                count += 1
                checker.check(case)
    for line in checker.wrong:
        print(line, file=sys.stderr)
    print(f"{count} models: {checker.compared} runs in range compared, {checker.refused} out of range refused, {len(checker.wrong)} wrong")
    return 1 if checker.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
