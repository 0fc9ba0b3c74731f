#!/usr/bin/env python3
"""Transformers as PyTorch's exporter writes them with dynamic axes, and graphs whose sizes data decide, compiled once, against onnxruntime at random sizes,
of which some have a fast path.

    sizes.py --tilewright BUILD/tilewright [--work DIR] [--sizes 20]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 2e-5   # of an output's largest element
HEADS, HIDDEN, WORDS, PLACES = 4, 64, 100, 80


class Model:
    def __init__(self):
        self.rng = np.random.default_rng(3)
        self.nodes, self.weights, self.inputs = [], [], []

    def add(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def input(self, name, dtype, *dims):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, dims))
        return name

    def constant(self, value, dtype=np.int64):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def weight(self, *shape):
        return self.constant(self.rng.standard_normal(shape) * shape[0] ** -0.5, np.float32)

    def size(self, x, axis):
        return self.add("Gather", self.add("Shape", x), self.constant(axis), axis=0)

    def list(self, *scalars):
        return self.add("Concat", *[self.add("Unsqueeze", s, self.constant([0])) for s in scalars], axis=0)

    def linear(self, x, outputs, inputs=HIDDEN):
        return self.add("Add", self.add("MatMul", x, self.weight(inputs, outputs)), self.weight(outputs))

    def norm(self, x):
        return self.add("LayerNormalization", x, self.weight(HIDDEN), self.weight(HIDDEN), axis=-1)

    def heads(self, x, batch, seq):
        shape = self.list(batch, seq, self.constant(HEADS), self.constant(HIDDEN // HEADS))
        return self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    def block(self, x, mask_of):
        batch, seq = self.size(x, 0), self.size(x, 1)
        q, k, v = (self.heads(self.linear(x, HIDDEN), batch, seq) for _ in range(3))
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = mask_of(self.add("Div", scores, self.constant((HIDDEN // HEADS) ** 0.5, np.float32)))
        mixed = self.add("Transpose", self.add("MatMul", self.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        merged = self.add("Reshape", mixed, self.list(self.size(mixed, 0), self.size(mixed, 1), self.constant(HIDDEN)))
        x = self.norm(self.add("Add", x, self.linear(merged, HIDDEN)))
        y = self.linear(x, 2 * HIDDEN)
        gelu = self.add("Mul", self.add("Mul", y, self.constant(0.5, np.float32)),
                        self.add("Add", self.add("Erf", self.add("Div", y, self.constant(2 ** 0.5, np.float32))), self.constant(1, np.float32)))
        return self.norm(self.add("Add", x, self.linear(gelu, HIDDEN, 2 * HIDDEN)))

    def finish(self, *outputs, opset=17):
        for i, (value, dtype, rank) in enumerate(outputs):
            self.nodes.append(helper.make_node("Identity", [value], [f"out{i}"]))
        infos = [helper.make_tensor_value_info(f"out{i}", dtype, [None] * rank) for i, (_, dtype, rank) in enumerate(outputs)]
        graph = helper.make_graph(self.nodes, "sizes", self.inputs, infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def bert():
    m = Model()
    ids, mask = m.input("ids", TensorProto.INT64, "batch", "seq"), m.input("mask", TensorProto.INT64, "batch", "seq")
    end = m.add("Unsqueeze", m.size(ids, 1), m.constant([0]))
    places = m.add("Slice", m.constant([list(range(PLACES))]), m.constant([0]), end, m.constant([1]), m.constant([1]))
    kinds = m.add("ConstantOfShape", m.add("Shape", ids), value=numpy_helper.from_array(np.array([0], np.int64)))
    x = m.add("Add", m.add("Gather", m.weight(WORDS, HIDDEN), ids), m.add("Gather", m.weight(2, HIDDEN), kinds))
    x = m.norm(m.add("Add", x, m.add("Gather", m.weight(PLACES, HIDDEN), places)))
    wide = m.add("Unsqueeze", m.add("Unsqueeze", mask, m.constant([1])), m.constant([2]))
    shape = m.list(m.size(ids, 0), m.constant(1), m.size(ids, 1), m.size(ids, 1))
    wide = m.add("Cast", m.add("Expand", wide, shape), to=TensorProto.FLOAT)
    off = m.add("Mul", m.add("Sub", m.constant(1, np.float32), wide), m.constant(-1e9, np.float32))
    for _ in range(2):
        x = m.block(x, lambda scores: m.add("Add", scores, off))
    first = m.add("Gather", x, m.constant(0), axis=1)
    return m.finish((x, TensorProto.FLOAT, 3), (m.add("Tanh", m.linear(first, HIDDEN)), TensorProto.FLOAT, 2))


def gpt():
    m = Model()
    ids = m.input("ids", TensorProto.INT64, "batch", "seq")
    batch, seq = m.size(ids, 0), m.size(ids, 1)
    places = m.add("Range", m.constant(0), seq, m.constant(1))
    places = m.add("Reshape", m.add("Unsqueeze", places, m.constant([0])), m.constant([-1, 0]), allowzero=0)
    x = m.add("Add", m.add("Gather", m.weight(WORDS, HIDDEN), m.add("Reshape", ids, m.list(m.constant(-1), seq))), m.add("Gather", m.weight(PLACES, HIDDEN), places))
    table = m.constant(np.tril(np.ones((1, 1, PLACES, PLACES))), bool)

    def causal(scores):
        rows = m.size(scores, 2)
        cut = m.add("Slice", table, m.constant([0]), m.add("Unsqueeze", rows, m.constant([0])), m.constant([2]))
        cut = m.add("Slice", cut, m.constant([0]), m.add("Unsqueeze", m.size(scores, 3), m.constant([0])), m.constant([3]))
        return m.add("Where", cut, scores, m.constant(-3e38, np.float32))

    def made(scores):
        ones = m.add("ConstantOfShape", m.list(seq, seq), value=numpy_helper.from_array(np.array([1], np.int64)))
        keep = m.add("Cast", m.add("Trilu", ones, upper=0), to=TensorProto.BOOL)
        return m.add("Where", keep, scores, m.constant(-3e38, np.float32))

    x = m.block(m.block(x, causal), made)
    shape = m.list(batch, seq, m.constant(WORDS))
    logits = m.add("Reshape", m.add("MatMul", m.add("Reshape", x, m.constant([-1, HIDDEN])), m.weight(HIDDEN, WORDS)), shape)
    return m.finish((logits, TensorProto.FLOAT, 3))


def by_data():
    """Sizes in tensors: reshape, slice, expand, tile, range and what follows from them."""
    m = Model()
    x = m.input("x", TensorProto.FLOAT, "rows", 12)
    shape, ends, times = m.input("shape", TensorProto.INT64, 3), m.input("ends", TensorProto.INT64, 2), m.input("times", TensorProto.INT64, 2)
    parted = m.add("Reshape", x, shape)
    cut = m.add("Slice", x, m.constant([0, 1]), ends, m.constant([0, 1]))
    tiled = m.add("Tile", m.add("Relu", cut), times)
    summed = m.add("MatMul", cut, m.add("Transpose", cut, perm=[1, 0]))
    steps = m.add("Range", m.constant(0), m.add("Gather", ends, m.constant(0)), m.constant(1))
    wide = m.add("Expand", m.add("Unsqueeze", steps, m.constant([1])), m.add("Concat", m.constant([1]), m.add("Gather", ends, m.constant([1])), axis=0))
    kept = m.add("Softmax", m.add("Add", parted, m.constant(1, np.float32)), axis=-1)
    outputs = [(kept, TensorProto.FLOAT, 3), (tiled, TensorProto.FLOAT, 2), (summed, TensorProto.FLOAT, 2), (wide, TensorProto.INT64, 2)]
    return m.finish(*outputs)


# Data inside of branches and loops decide about sizes there, and about those of what comes out. `kept` is what of v is not 0.
KEPT = "nz = NonZero (v) at = Squeeze (nz, zero) kept = Gather (v, at)"
IF = "y = If (c) <then_branch = t () => (float[a] t0) {{ {} }}, else_branch = e () => (float[b] e0) {{ {} }}>"
LOOP = "y = Loop (n, yes, v) <body = l (int64 i, bool go, float[m] v0) => (bool more, float[m] v1) {{ more = Identity (go) {} }}>"
INSIDE = {
    "one_branch": IF.format(KEPT + " t0 = Identity (kept)", "e0 = Identity (v)"),
    "both_branches": IF.format(KEPT + " t0 = Identity (kept)", "r = Neg (v) q = Relu (r) nz1 = NonZero (q) at1 = Squeeze (nz1, zero) e0 = Gather (v, at1)"),
    "longer": IF.format(KEPT + " t0 = Concat <axis = 0> (kept, kept, v)", "e0 = Identity (v)"),
    "behind": KEPT + " " + IF.format("s = Sqrt (kept) nz1 = NonZero (s) at1 = Squeeze (nz1, zero) k1 = Gather (kept, at1) t0 = Concat <axis = 0> (k1, v)", "e0 = Neg (kept)"),
    "loop": LOOP.format("nz = NonZero (v0) at = Squeeze (nz, zero) kept = Gather (v0, at) s = ReduceSum (kept) v1 = Sub (v0, s)"),
    "branch_in_loop": LOOP.format(IF.format("nz = NonZero (v0) at = Squeeze (nz, zero) t0 = Gather (v0, at)", "e0 = Identity (v0)").replace("y = If", "w = If")
                                  + " s = ReduceSum <keepdims = 0> (w) v1 = Sub (v0, s)"),
}


def inside(body):
    return onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (bool c, int64 n, float[N] v) => (float[k] out0) '
                                   f"<int64[1] zero = {{0}}, bool yes = {{1}}> {{ {body} out0 = Identity (y) }}")


def feeds_of(kind, rng):
    if kind in INSIDE:
        numbers = rng.standard_normal(int(rng.integers(1, 40))) * 3 * (rng.random() < 0.9)
        return {"c": np.array(rng.random() < 0.5), "n": np.array(rng.integers(0, 4)), "v": (numbers * (rng.random(numbers.size) < 0.5)).astype(np.float32)}
    batch, seq = int(rng.integers(1, 6)), int(rng.integers(1, PLACES + 1))
    if kind == "by_data":
        rows = int(rng.integers(2, 9))
        shape = [[-1, 4, 3], [rows, 0, 1], [2, -1, rows * 2], [3, 4, rows], [0, 2, -1]][int(rng.integers(0, 5))]
        return {"x": rng.standard_normal((rows, 12)).astype(np.float32), "shape": np.array(shape), "ends": np.array([rng.integers(1, rows + 3), rng.integers(2, 14)]),
                "times": rng.integers(1, 4, 2)}
    feeds = {"ids": rng.integers(0, WORDS, (batch, seq))}
    if kind == "bert":
        feeds["mask"] = (np.arange(seq)[None] < rng.integers(1, seq + 1, (batch, 1))).astype(np.int64)
    return feeds


def run(tilewright, artifact, feeds, count, work):
    arguments, folder = [], work / "out"
    for name, value in feeds.items():
        np.save(work / f"{name}.npy", value)
        arguments += ["--input", f"{name}={work / name}.npy"]
    subprocess.run([tilewright, "run", artifact, *arguments, "--threads", "2", "--output-dir", folder], check=True, stdout=subprocess.DEVNULL)
    return [np.load(folder / f"out{i}.npy") for i in range(count)]


def worst(expected, got):
    error = 0.0
    for want, have in zip(expected, got):
        if want.shape != have.shape:
            return f"shape {have.shape}, expected {want.shape}"
        if want.size:
            error = max(error, float(np.abs(want - have).max()) / max(1e-9, float(np.abs(want).max())))
    return error


def sizes_of(session, feeds):
    """The free dimensions of a run: batch=3,seq=41."""
    sizes = {dim: extent for i in session.get_inputs() for dim, extent in zip(i.shape, feeds[i.name].shape) if isinstance(dim, str)}
    return ",".join(f"{name}={size}" for name, size in sorted(sizes.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--sizes", type=int, default=20)
    args = parser.parse_args()
    temporary = None if args.work else tempfile.TemporaryDirectory()
    work, failed = args.work or pathlib.Path(temporary.name), 0
    makers = {make.__name__: make for make in (bert, gpt, by_data)} | {name: lambda body=body: inside(body) for name, body in INSIDE.items()}
    for kind, make in makers.items():
        rng = np.random.default_rng(1)
        path, artifact = work / f"{kind}.onnx", work / f"{kind}.so"
        onnx.save(make(), path)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        drawn = [feeds_of(kind, rng) for _ in range(args.sizes)]
        fast = [] if kind == "by_data" or kind in INSIDE else ["--specialize", sizes_of(session, drawn[0]), "--specialize", sizes_of(session, drawn[1]).split(",")[1]]
        subprocess.run([args.tilewright, "compile", path, "-o", artifact, *fast], check=True, stdout=subprocess.DEVNULL)
        for feeds in drawn:
            expected = session.run(None, feeds)
            error = worst(expected, run(args.tilewright, artifact, feeds, len(expected), work))
            sizes = {name: list(value.shape) if kind != "by_data" or value.ndim > 1 else value.tolist() for name, value in feeds.items()}
            good = not isinstance(error, str) and error <= TOLERANCE
            failed += not good
            print(("ok  " if good else "OFF "), kind, sizes, error if isinstance(error, str) else f"{error:.1e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
