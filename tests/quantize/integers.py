#!/usr/bin/env python3
"""Operators between quantized tensors, as QDQ and as QLinear operators, against onnxruntime without its optimizations: bytes are equal but where a case
allows one step, and where floats lie next to a rounding tie, which is one element in a thousand at most. pairs.py knows the ties.
All cases of a form are one model, which also says which of them stay in floats.

    integers.py --tilewright BUILD/tilewright [--only NAME] [--seed N]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8, np.float32: TensorProto.FLOAT}


NEXT_TO_TIES = 1000   # one element in so many


class Model:
    """Collects nodes, weights and inputs with what onnxruntime is fed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.values, self.weights, self.results = [], [], [], []
        self.feeds, self.steps = {}, {}   # steps: by output, how far off a byte may be
        self.count = 0

    def name(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def constant(self, array, stem="c"):
        name = self.name(stem)
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, domain="", **attributes):
        out = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [out], out, domain=domain, **attributes))
        return out

    def parameters(self, t):
        """A scale and a zero point. Every other scale is a power of two, whose results lie on ties."""
        scale = np.float32(2.0 ** self.rng.integers(-6, -3)) if self.rng.integers(2) else np.float32(self.rng.uniform(0.01, 0.08))
        info = np.iinfo(t)
        return self.constant(scale, "scale"), self.constant(np.asarray(self.rng.integers(info.min, info.max + 1), t), "zero")

    def bytes(self, shape, t, made):
        """A quantized tensor and its parameters. made: "input", "constant", or "node", which quantizes an input of floats."""
        scale, zero = self.parameters(t)
        info = np.iinfo(t)
        data = self.rng.integers(info.min, info.max + 1, shape).astype(t)
        if made == "constant":
            return self.constant(data, "w"), scale, zero
        name = self.name("x")
        if made == "input":
            self.feeds[name] = data
            self.values.append(helper.make_tensor_value_info(name, TYPES[t], shape))
            return name, scale, zero
        self.feeds[name] = self.rng.normal(0, 2, shape).astype(np.float32)
        self.values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.node("QuantizeLinear", [name, scale, zero]), scale, zero

    def real(self, quantized):
        return self.node("DequantizeLinear", list(quantized))

    def result(self, value, steps=0):
        self.results.append(helper.make_empty_tensor_value_info(value))
        self.steps[value] = steps

    def quantized(self, value, t, steps=0, parameters=None, seen=True):
        """Behind an operator: the bytes are an output of the model."""
        scale, zero = parameters or self.parameters(t)
        y = self.node("QuantizeLinear", [value, scale, zero])
        if seen:
            self.result(y, steps)
        return y, scale, zero

    def proto(self):
        graph = helper.make_graph(self.nodes, "integers", self.values, self.results, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)], ir_version=8)


SHAPES = [((2, 3, 5, 7), (2, 3, 5, 7)), ((2, 3, 5, 7), (1, 3, 1, 1)), ((1, 3, 1, 1), (2, 3, 5, 7)), ((4, 6), (6,)), ((6,), (4, 6)), ((4, 6), ()), ((4, 1), (4, 6))]


def pairs(m, op):
    for a, b in SHAPES:
        for t in (np.uint8, np.int8):
            for other in ("input", "constant"):
                m.quantized(m.node(op, [m.real(m.bytes(a, t, "input")), m.real(m.bytes(b, t, other))]), t)
        # Between operators, where onnxruntime keeps i8 as u8
        inner = m.quantized(m.node(op, [m.real(m.bytes(a, np.uint8, "node")), m.real(m.bytes(b, np.uint8, "node"))]), np.uint8, seen=False)
        m.result(m.real(inner))


def add(m):
    pairs(m, "Add")


def ties(m):
    """x + x of every byte: a quarter of the sums are ties of f32, next to odd zero points. They go to the even integer, and then the zero point is added."""
    x = m.name("x")
    m.feeds[x] = np.arange(-128, 128).astype(np.int8)
    m.values.append(helper.make_tensor_value_info(x, TensorProto.INT8, (256,)))
    x = m.real((x, m.constant(np.float32(0.03125)), m.constant(np.int8(-25))))
    m.quantized(m.node("Add", [x, x]), np.int8, parameters=(m.constant(np.float32(0.05)), m.constant(np.int8(1))))


def mul(m):
    pairs(m, "Mul")
    x = m.real(m.bytes((3, 9), np.uint8, "input"))
    m.quantized(m.node("Mul", [x, x]), np.uint8)


def unary(m, fn, steps=0):
    for t in (np.uint8, np.int8):
        for made in ("input", "node"):
            m.quantized(fn(m.real(m.bytes((3, 257), t, made))), t, steps)


def sigmoid(m):
    unary(m, lambda x: m.node("Sigmoid", [x]))


def leaky_relu(m):
    unary(m, lambda x: m.node("LeakyRelu", [x], alpha=0.1))


def tanh(m):
    unary(m, lambda x: m.node("Tanh", [x]))


def hard_swish(m):
    unary(m, lambda x: m.node("HardSwish", [x]))


def gelu(m):
    def made(x):
        half = m.node("Mul", [x, m.constant(np.float32(0.5))])
        erf = m.node("Erf", [m.node("Div", [x, m.constant(np.float32(2 ** 0.5))])])
        return m.node("Mul", [half, m.node("Add", [erf, m.constant(np.float32(1))])])
    unary(m, made, 1)


def silu(m):
    """x * sigmoid(x), both quantized: a table of x in the end."""
    for made in ("input", "node"):
        x = m.bytes((2, 4, 6, 6), np.uint8, made)
        gate = m.quantized(m.node("Sigmoid", [m.real(x)]), np.uint8, seen=False)
        m.quantized(m.node("Mul", [m.real(x), m.real(gate)]), np.uint8)


def concat(m):
    for t in (np.uint8, np.int8):
        parts = [m.bytes((2, n, 5), t, "input") for n in (3, 4, 1)]
        m.quantized(m.node("Concat", [m.real(p) for p in parts], axis=1), t, parameters=parts[1][1:])


def averages(m):
    for shape in ((2, 5, 7, 7), (1, 3, 16, 9)):
        m.quantized(m.node("GlobalAveragePool", [m.real(m.bytes(shape, np.uint8, "input"))]), np.uint8)
        for more in ({}, {"pads": [1, 1, 1, 1]}, {"pads": [1, 0, 1, 1], "count_include_pad": 1, "strides": [2, 1]}, {"ceil_mode": 1, "strides": [2, 2]}):
            m.quantized(m.node("AveragePool", [m.real(m.bytes(shape, np.uint8, "input"))], kernel_shape=[3, 2], **more), np.uint8, 1)
        m.quantized(m.node("ReduceMean", [m.real(m.bytes(shape, np.int8, "input"))], axes=[1, 3], keepdims=0), np.int8, 1)


def moves(m):
    x = m.bytes((1, 4, 5, 6), np.uint8, "input")
    scales = m.constant(np.array([1, 1, 2, 2], np.float32))
    m.quantized(m.node("Resize", [m.real(x), "", scales], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"), np.uint8, parameters=x[1:])
    x = m.bytes((1, 4, 5, 6), np.int8, "input")
    m.quantized(m.node("Expand", [m.real(x), m.constant(np.array([3, 4, 5, 6], np.int64))]), np.int8, parameters=x[1:])


def convolution(m, t, group, wide, transposed=False, steps=0):
    """Of 8 channels, with a zero point of the input and, of u8, of the weights."""
    x = m.bytes((1, 8, 6, 7), t, "input")
    shape = (8, wide, 3, 3) if transposed else (wide * group, 8 // group, 3, 3)
    axis = 1 if transposed else 0
    scales = m.rng.uniform(0.01, 0.05, shape[axis]).astype(np.float32)
    w = m.node("DequantizeLinear", [m.constant(m.rng.integers(-127, 128, shape).astype(np.int8)), m.constant(scales), m.constant(np.zeros(shape[axis], np.int8))], axis=axis)
    more = {"strides": [2, 2], "output_padding": [1, 1]} if transposed else {}
    y = m.node("ConvTranspose" if transposed else "Conv", [m.real(x), w], group=group, pads=[1, 1, 1, 1], kernel_shape=[3, 3], **more)
    m.quantized(y, t, steps, parameters=(m.constant(np.float32(0.5)), m.constant(np.asarray(3, t))))


def convolutions(m):
    for t in (np.uint8, np.int8):
        for group, wide in ((1, 5), (2, 3), (4, 2), (8, 1), (8, 2)):
            convolution(m, t, group, wide)


def transposed(m):
    """onnxruntime computes these in floats."""
    for t in (np.uint8, np.int8):
        for group, wide in ((1, 5), (2, 3), (8, 1)):
            convolution(m, t, group, wide, True, 1)


def qlinear(m):
    """com.microsoft's operators."""
    for t in (np.uint8, np.int8):
        for op in ("QLinearAdd", "QLinearMul"):
            for a, b in SHAPES:
                m.result(m.node(op, [*m.bytes(a, t, "input"), *m.bytes(b, t, "input"), *m.parameters(t)], MS), 1)   # zero points are added first
        for op, more in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2})):
            m.result(m.node(op, [*m.bytes((3, 99), t, "input"), *m.parameters(t)], MS, **more))
        parts = [v for n in (2, 3) for v in m.bytes((2, n, 4), t, "input")]
        m.result(m.node("QLinearConcat", [*m.parameters(t), *parts], MS, axis=1))
    m.result(m.node("QLinearGlobalAveragePool", [*m.bytes((2, 3, 6, 5), np.uint8, "input"), *m.parameters(np.uint8)], MS, channels_last=0))
    m.result(m.node("QLinearAveragePool", [*m.bytes((2, 3, 6, 5), np.uint8, "input"), *m.parameters(np.uint8)], MS, channels_last=0, kernel_shape=[2, 3]), 1)


def lstm(m):
    """A hidden state that lies between two bytes may be rounded to either: its sums have another order."""
    for t in (np.uint8, np.int8):
        for directions, by_gate in ((1, False), (2, False), (1, True)):
            hidden, wide, steps, batch = 8, 12, 5, 2
            kind = "bidirectional" if directions == 2 else "forward"
            info = np.iinfo(t)
            weights = lambda rows: m.constant(m.rng.integers(info.min, info.max + 1, (directions, rows, 4 * hidden)).astype(t))
            shape = (directions, 4 * hidden) if by_gate else (directions,)
            scale = lambda: m.constant(m.rng.uniform(0.002, 0.004, shape).astype(np.float32))
            zero = lambda: m.constant(np.full(shape, 0 if t == np.int8 else 128, t))
            x = m.name("x")
            m.feeds[x] = m.rng.normal(0, 1, (steps, batch, wide)).astype(np.float32)
            m.values.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, (steps, batch, wide)))
            bias = m.constant(m.rng.normal(0, 0.1, (directions, 8 * hidden)).astype(np.float32))
            m.result(m.node("DynamicQuantizeLSTM", [x, weights(wide), weights(hidden), bias, "", "", "", "", scale(), zero(), scale(), zero()], MS, hidden_size=hidden, direction=kind), 0.01)


CASES = [add, ties, mul, sigmoid, leaky_relu, tanh, hard_swish, gelu, silu, concat, averages, moves, convolutions, transposed, qlinear, lstm]


def compiled(tilewright, work, model, feeds):
    path, artifact, folder = work / "model.onnx", work / "model.so", work / "out"
    onnx.save(model, path)
    told = subprocess.run([tilewright, "compile", path, "-o", artifact, "--json"], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
    arguments = []
    for i, (name, value) in enumerate(feeds.items()):
        np.save(work / f"in_{i}.npy", value)
        arguments += ["--input", f"{name}={work / f'in_{i}.npy'}"]
    subprocess.run([tilewright, "run", artifact, *arguments, "--output-dir", folder], check=True, stdout=subprocess.DEVNULL)
    return {path.stem: np.load(path) for path in folder.glob("*.npy")}, [note for note in json.loads(told.stdout).get("notes", []) if note.startswith("floats")]


def check(tilewright, work, case, seed):
    m = Model(seed)
    case(m)
    model = m.proto()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL   # which computes QDQ by the standard
    options.intra_op_num_threads = 1   # each thread rounds its part of a batch of hidden states by a range of its own
    wanted = [value.name for value in m.results]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = dict(zip(wanted, session.run(wanted, m.feeds)))
    del model.graph.output[:]   # with types, which a file must have
    model.graph.output.extend(helper.make_tensor_value_info(n, TYPES[y.dtype.type], [None] * y.ndim) for n, y in expected.items())
    got, notes = compiled(tilewright, work, model, m.feeds)
    off, elements, stepped, beyond = [], 0, 0, 0
    if case is ties:   # `verify` has the same rule
        given = [flag for i, name in enumerate(m.feeds) for flag in ("--input", f"{name}={work / f'in_{i}.npy'}")]
        verified = subprocess.run([tilewright, "verify", work / "model.so", work / "model.onnx", *given], capture_output=True, text=True)
        off += [verified.stdout + verified.stderr] if verified.returncode else []
    for name in wanted:
        want, have = expected[name].astype(np.float64), got[name].astype(np.float64)
        assert want.shape == have.shape and got[name].dtype == expected[name].dtype, name
        distance = np.abs(want - have)
        elements += want.size
        stepped += np.count_nonzero(distance)
        beyond += np.count_nonzero(distance > m.steps[name])
        if distance.max() > max(m.steps[name], 1):
            off.append(f"{name}: {np.count_nonzero(distance)} of {want.size} off, by {distance.max():g} at most")
    if beyond > elements // NEXT_TO_TIES:
        off.append(f"{beyond} of {elements} off, more than lie next to ties")
    print(f"{'FAIL' if off or notes else 'ok  '} {case.__name__}: {len(wanted)} results, {elements} elements, {stepped} a step away", *off, *notes, sep="\n     ", flush=True)
    return not off and not notes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    cases = [c for c in CASES if c.__name__.startswith(args.only)]
    with tempfile.TemporaryDirectory() as folder:
        good = [check(args.tilewright.resolve(), pathlib.Path(folder), case, args.seed) for case in cases]
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
