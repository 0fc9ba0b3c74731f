#!/usr/bin/env python3
"""Random valid graphs over ONNX's operators: types, shapes, broadcasting, control flow; compiled and compared with onnxruntime and, by `tilewright verify`, with
the reference evaluators in f64. A failing graph is shrunk to the nodes that it takes, and kept.

    random_models.py --tilewright BUILD/tilewright [--count N] [--seed FIRST] [--nodes N] [--keep DIR]
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

TOLERANCE = 1e-4   # of an output's range
MISMATCH = 4       # tilewright verify's exit status for outputs that are off
F32, I64, BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_)
SAFE_UNARY = ["Abs", "Neg", "Tanh", "Sigmoid", "Relu", "Erf", "Sin", "Cos", "Atan", "Softsign", "Softplus", "Elu", "Selu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Gelu", "Floor", "Ceil",
              "Round", "Sign", "Identity", "ThresholdedRelu", "Celu"]
SAFE_SMOOTH = ["Tanh", "Sigmoid", "Relu", "Erf", "Atan", "Softplus", "Abs", "Neg"]
ROUNDING = {"Floor", "Ceil", "Round", "Sign"}   # of what is only nearly the same they make something else: on inputs alone
MAX_ELEMENTS = 4096


class Value:
    def __init__(self, name, dtype, shape, exact):
        self.name, self.dtype, self.shape, self.exact = name, np.dtype(dtype), tuple(shape), exact


class Generator:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.values, self.feeds = [], [], [], {}
        for i in range(int(self.rng.integers(1, 4))):
            dtype = [F32, F32, F32, I64][self.pick(4)]
            shape = [int(self.rng.integers(1, 7)) for _ in range(self.pick(5))]
            value = self.rng.standard_normal(shape).astype(F32) if dtype == F32 else self.rng.integers(-3, 4, shape).astype(I64)
            self.feeds[f"x{i}"] = np.asarray(value)
            self.values.append(Value(f"x{i}", dtype, shape, True))

    def pick(self, count):
        return int(self.rng.integers(count))

    def one(self, dtype=None, rank=0, most=9, exact=False):
        found = [v for v in self.values if (dtype is None or v.dtype == dtype) and rank <= len(v.shape) <= most and v.exact >= exact]
        return found[self.pick(len(found))] if found else None

    def weight(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def numbers(self, *shape, dtype=F32):
        return self.weight((self.rng.standard_normal(shape) * 0.5).astype(dtype))

    def add(self, op, inputs, outs, exact=False, **attributes):
        """outs: (dtype, shape) of each output."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(outs))]
        if any(np.prod(shape, dtype=np.int64) > MAX_ELEMENTS for _, shape in outs):
            return
        self.nodes.append(helper.make_node(op, inputs, names, f"n{len(self.nodes)}", **attributes))
        self.values += [Value(name, dtype, shape, exact) for name, (dtype, shape) in zip(names, outs)]

    def step(self):
        family = FAMILIES[self.pick(len(FAMILIES))]
        family(self)

    # Each draws operands that fit; nothing happens where there are none.
    def unary(self):
        x, op = self.one(F32), SAFE_UNARY[self.pick(len(SAFE_UNARY))]
        if x and (op not in ROUNDING or x.exact):
            self.add(op, [x.name], [(F32, x.shape)], exact=op == "Identity" and x.exact)

    def binary(self):
        x = self.one()
        if not x or x.dtype == BOOL:
            return
        others = [v for v in self.values if v.dtype == x.dtype and fits(v.shape, x.shape)]
        shape = tuple(1 if self.pick(2) else d for d in x.shape)[self.pick(len(x.shape) + 1):]
        if self.pick(2) or not others:
            fresh = self.rng.standard_normal(shape).astype(F32) if x.dtype == F32 else self.rng.integers(1, 4, shape).astype(I64)
            other, other_shape = self.weight(np.asarray(fresh)), shape
        else:
            v = others[self.pick(len(others))]
            other, other_shape = v.name, v.shape
        op = ["Add", "Sub", "Mul", "Max", "Min"][self.pick(5)]
        pair = [x.name, other][::1 if self.pick(2) else -1]
        self.add(op, pair, [(x.dtype, np.broadcast_shapes(x.shape, other_shape))])

    def compare(self):
        x = self.one()
        if x and x.exact and x.dtype != BOOL:
            self.add(["Less", "Greater", "Equal", "LessOrEqual"][self.pick(4)], [x.name, self.weight(np.zeros((), x.dtype))], [(BOOL, x.shape)], exact=True)

    def where(self):
        c, x = self.one(BOOL), self.one(F32)
        if c and x and fits(c.shape, x.shape):
            self.add("Where", [c.name, x.name, self.numbers()], [(F32, np.broadcast_shapes(c.shape, x.shape))])

    def cast(self):
        x = self.one()
        if x and (x.exact or x.dtype == I64):
            to = [F32, I64][self.pick(2)]
            if x.dtype == F32 and to == I64 and not x.exact:
                return
            self.add("Cast", [x.name], [(to, x.shape)], exact=x.exact, to=helper.np_dtype_to_tensor_dtype(to))

    def reduce(self):
        x = self.one(F32, 1)
        if not x:
            return
        axes = sorted({self.pick(len(x.shape)) for _ in range(1 + self.pick(2))})
        keep = self.pick(2)
        shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
        op = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"][self.pick(8)]
        if op == "ReduceLogSumExp" and any(n.op_type == "LogSoftmax" and x.name in n.output for n in self.nodes):
            return   # 0 but for rounding
        given = [a - len(x.shape) if self.pick(2) else a for a in axes]
        self.add(op, [x.name, self.weight(np.array(given, np.int64))], [(F32, shape)], keepdims=keep)

    def softmax(self):
        x = self.one(F32, 1)
        if not x:
            return
        op, axis = ["Softmax", "LogSoftmax"][self.pick(2)], self.pick(2 * len(x.shape)) - len(x.shape)
        if op == "Softmax" or x.shape[axis] > 1:   # the logarithm of one element's is 0 but for rounding
            self.add(op, [x.name], [(F32, x.shape)], axis=axis)

    def norm(self):
        x = self.one(F32, 1)
        if x and x.shape[-1] > 1:
            self.add("LayerNormalization", [x.name, self.numbers(x.shape[-1]), self.numbers(x.shape[-1])], [(F32, x.shape)], axis=-1, epsilon=1e-2)

    def matmul(self):
        x = self.one(F32, 2)
        if not x:
            return
        columns = 1 + self.pick(20)
        others = [v for v in self.values if v.dtype == F32 and len(v.shape) >= 2 and v.shape[-2] == x.shape[-1] and fits(v.shape[:-2], x.shape[:-2])]
        if others and self.pick(2):
            v = others[self.pick(len(others))]
            self.add("MatMul", [x.name, v.name], [(F32, np.broadcast_shapes(v.shape[:-2], x.shape[:-2]) + (x.shape[-2], v.shape[-1]))])
        elif len(x.shape) == 2 and self.pick(2):
            flip = self.pick(2)
            w = self.numbers(*((columns, x.shape[1]) if flip else (x.shape[1], columns)))
            self.add("Gemm", [x.name, w, self.numbers(columns)], [(F32, (x.shape[0], columns))], transB=flip, alpha=0.5)
        else:
            self.add("MatMul", [x.name, self.numbers(x.shape[-1], columns)], [(F32, x.shape[:-1] + (columns,))])

    def conv(self):
        x = self.one(F32, 3, 4)
        if not x:
            return
        spatial = len(x.shape) - 2
        group = x.shape[1] if self.pick(3) == 0 else 1
        out = group * (1 + self.pick(5))
        kernel = [1 + self.pick(min(3, d)) for d in x.shape[2:]]
        strides = [1 + self.pick(2) for _ in kernel]
        pads = [self.pick(k) for k in kernel] * 2
        size = [(d + 2 * p - k) // s + 1 for d, k, s, p in zip(x.shape[2:], kernel, strides, pads[:spatial])]
        self.add("Conv", [x.name, self.numbers(out, x.shape[1] // group, *kernel), self.numbers(out)], [(F32, (x.shape[0], out, *size))], strides=strides, pads=pads, group=group)

    def pool(self):
        x = self.one(F32, 3, 4)
        if not x:
            return
        kernel = [1 + self.pick(min(3, d)) for d in x.shape[2:]]
        strides = [1 + self.pick(2) for _ in kernel]
        size = [(d - k) // s + 1 for d, k, s in zip(x.shape[2:], kernel, strides)]
        self.add(["MaxPool", "AveragePool"][self.pick(2)], [x.name], [(F32, (*x.shape[:2], *size))], kernel_shape=kernel, strides=strides)

    def transpose(self):
        x = self.one(None, 1)
        if x:
            perm = [int(i) for i in self.rng.permutation(len(x.shape))]
            self.add("Transpose", [x.name], [(x.dtype, [x.shape[i] for i in perm])], exact=x.exact, perm=perm)

    def reshape(self):
        x = self.one()
        if not x:
            return
        left, shape = int(np.prod(x.shape, dtype=np.int64)), []
        while left > 1 and len(shape) < 3:
            divisors = [d for d in range(1, left + 1) if left % d == 0]
            shape.append(divisors[self.pick(len(divisors))])
            left //= shape[-1]
        shape = shape + [left] if left > 1 or self.pick(2) else shape
        wanted = list(shape)
        if wanted and self.pick(2):
            wanted[self.pick(len(wanted))] = -1
        self.add("Reshape", [x.name, self.weight(np.array(wanted, np.int64))], [(x.dtype, shape)], exact=x.exact)

    def concat(self):
        x = self.one(None, 1)
        if not x:
            return
        axis = self.pick(len(x.shape))
        parts = [v for v in self.values if v.dtype == x.dtype and len(v.shape) == len(x.shape) and all(i == axis or a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)))]
        chosen = [x] + [parts[self.pick(len(parts))] for _ in range(1 + self.pick(2))]
        shape = list(x.shape)
        shape[axis] = sum(v.shape[axis] for v in chosen)
        self.add("Concat", [v.name for v in chosen], [(x.dtype, shape)], exact=all(v.exact for v in chosen), axis=axis)

    def slice(self):
        x = self.one(None, 1)
        if not x:
            return
        axis, step = self.pick(len(x.shape)), [1, 1, 2, -1][self.pick(4)]
        extent = x.shape[axis]
        start, end = sorted((self.pick(extent), 1 + self.pick(extent)))
        end = max(end, start + 1)
        given = (start, end, step) if step > 0 else (end - 1, start - 1 if start else -1000, step)
        shape = list(x.shape)
        shape[axis] = len(range(start, end, abs(step)))
        lists = [self.weight(np.array([v], np.int64)) for v in (given[0], given[1], axis, given[2])]
        self.add("Slice", [x.name, *lists], [(x.dtype, shape)], exact=x.exact)

    def gather(self):
        x = self.one(None, 1)
        if not x:
            return
        axis = self.pick(len(x.shape))
        shape = [1 + self.pick(3) for _ in range(self.pick(3))]
        indices = self.rng.integers(-x.shape[axis], x.shape[axis], shape).astype(np.int64)
        self.add("Gather", [x.name, self.weight(np.asarray(indices))], [(x.dtype, x.shape[:axis] + tuple(shape) + x.shape[axis + 1:])], exact=x.exact, axis=axis)

    def pad(self):
        x = self.one(F32, 1)
        if x:
            begins, ends = ([self.pick(3) for _ in x.shape] for _ in range(2))
            self.add("Pad", [x.name, self.weight(np.array(begins + ends, np.int64)), self.numbers()], [(F32, [b + d + e for b, d, e in zip(begins, x.shape, ends)])])

    def expand(self):
        x = self.one()
        if x:
            shape = [1 + self.pick(2)] + [d if d > 1 else 1 + self.pick(3) for d in x.shape]
            self.add("Expand", [x.name, self.weight(np.array(shape, np.int64))], [(x.dtype, shape)], exact=x.exact)

    def split(self):
        x = self.one(None, 1)
        if not x:
            return
        axis = self.pick(len(x.shape))
        if x.shape[axis] < 2:
            return
        first = 1 + self.pick(x.shape[axis] - 1)
        shapes = [[n if i == axis else d for i, d in enumerate(x.shape)] for n in (first, x.shape[axis] - first)]
        self.add("Split", [x.name, self.weight(np.array([first, x.shape[axis] - first], np.int64))], [(x.dtype, s) for s in shapes], exact=x.exact, axis=axis)

    def arg(self):
        x = self.one(F32, 1)
        if x and x.exact:
            axis = self.pick(len(x.shape))
            self.add(["ArgMax", "ArgMin"][self.pick(2)], [x.name], [(I64, x.shape[:axis] + (1,) + x.shape[axis + 1:])], exact=True, axis=axis)

    def attention(self):
        x = self.one(F32, 3, 3)
        if not x or x.shape[2] < 2:
            return
        batch, rows, width = x.shape
        heads, size = 1 + self.pick(2), 1 + self.pick(8)
        def part():
            name = f"{len(self.nodes)}"
            self.add("MatMul", [x.name, self.numbers(width, heads * size)], [(F32, (batch, rows, heads * size))])
            self.add("Reshape", [f"v{name}_0", self.weight(np.array([0, 0, heads, size], np.int64))], [(F32, (batch, rows, heads, size))])
            self.add("Transpose", [f"v{int(name) + 1}_0"], [(F32, (batch, heads, rows, size))], perm=[0, 2, 1, 3])
            return f"v{int(name) + 2}_0"
        if batch * rows * heads * max(size, rows) > MAX_ELEMENTS:
            return
        q, k, v = part(), part(), part()
        self.add("Transpose", [k], [(F32, (batch, heads, size, rows))], perm=[0, 1, 3, 2])
        self.add("MatMul", [q, self.values[-1].name], [(F32, (batch, heads, rows, rows))])
        self.add("Softmax", [self.values[-1].name], [(F32, (batch, heads, rows, rows))], axis=-1)
        self.add("MatMul", [self.values[-1].name, v], [(F32, (batch, heads, rows, size))])

    # A bool that only the run knows, and the sum of which never hangs on rounding.
    def condition(self):
        x = self.one(exact=True)
        if not x or x.dtype == BOOL or not x.shape:
            return None
        count = int(np.prod(x.shape, dtype=np.int64))
        self.add("Reshape", [x.name, self.weight(np.array([-1], np.int64))], [(x.dtype, (count,))], exact=True)
        self.add("Gather", [self.values[-1].name, self.weight(np.array(self.pick(count), np.int64))], [(x.dtype, ())], exact=True, axis=0)
        self.add("Less", [self.values[-1].name, self.weight(np.zeros((), x.dtype))], [(BOOL, ())], exact=True)
        return self.values[-1].name

    # Branches read what is outside of them.
    def choice(self):
        y = self.one(F32)
        condition = self.condition() if y else None
        if not condition:
            return
        n = len(self.nodes)
        graphs = []
        for side in ("then", "else"):
            first, last = f"{side}{n}_a", f"{side}{n}_b"
            nodes = [helper.make_node(SAFE_SMOOTH[self.pick(len(SAFE_SMOOTH))], [y.name], [first]),
                     helper.make_node(["Add", "Mul", "Sub"][self.pick(3)], [first, self.numbers()], [last])]
            graphs.append(helper.make_graph(nodes, side, [], [helper.make_tensor_value_info(last, TensorProto.FLOAT, y.shape)]))
        self.add("If", [condition], [(F32, y.shape)], then_branch=graphs[0], else_branch=graphs[1])

    # So many iterations over a carried value, with a row an iteration; the number is known, or an element of the data.
    def loop(self):
        y = self.one(F32)
        if not y:
            return
        n, iterations = len(self.nodes), 1 + self.pick(4)
        stop = self.condition() if self.pick(3) == 0 else None
        shape, info = list(y.shape), helper.make_tensor_value_info
        names = {k: f"loop{n}_{k}" for k in ("i", "c", "state", "mixed", "next", "row", "go")}
        nodes = [helper.make_node(["Add", "Mul", "Sub"][self.pick(3)], [names["state"], y.name], [names["mixed"]]),
                 helper.make_node("Tanh", [names["mixed"]], [names["next"]]),
                 helper.make_node("Identity", [names["mixed"] if self.pick(2) else names["next"]], [names["row"]]),
                 helper.make_node("Identity", [stop or names["c"]], [names["go"]])]
        body = helper.make_graph(nodes, "body", [info(names["i"], TensorProto.INT64, []), info(names["c"], TensorProto.BOOL, []), info(names["state"], TensorProto.FLOAT, shape)],
                                 [info(names["go"], TensorProto.BOOL, []), info(names["next"], TensorProto.FLOAT, shape), info(names["row"], TensorProto.FLOAT, shape)])
        start = self.numbers(*shape)
        rows = [] if stop else [(F32, (iterations, *shape))]   # how many a condition leaves is not drawn on
        if stop:
            del body.output[-1]
        self.add("Loop", [self.weight(np.array(iterations, np.int64)), "", start], [(F32, tuple(shape)), *rows], body=body)

    def scan(self):
        x = self.one(F32, 2)
        if not x:
            return
        n, rest, info = len(self.nodes), list(x.shape[1:]), helper.make_tensor_value_info
        names = {k: f"scan{n}_{k}" for k in ("state", "row", "sum", "next", "out")}
        nodes = [helper.make_node("Add", [names["state"], names["row"]], [names["sum"]]), helper.make_node("Sigmoid", [names["sum"]], [names["next"]]),
                 helper.make_node("Identity", [names["sum"]], [names["out"]])]
        body = helper.make_graph(nodes, "body", [info(names[k], TensorProto.FLOAT, rest) for k in ("state", "row")],
                                 [info(names[k], TensorProto.FLOAT, rest) for k in ("next", "out")])
        self.add("Scan", [self.numbers(*rest), x.name], [(F32, tuple(rest)), (F32, x.shape)], body=body, num_scan_inputs=1, scan_input_directions=[self.pick(2)])

    def topk(self):
        x = self.one(F32, 1)
        if x and x.exact:
            axis = self.pick(len(x.shape))
            k = 1 + self.pick(x.shape[axis])
            shape = x.shape[:axis] + (k,) + x.shape[axis + 1:]
            self.add("TopK", [x.name, self.weight(np.array([k], np.int64))], [(F32, shape), (I64, shape)], exact=True, axis=axis, largest=self.pick(2))

    def cumsum(self):
        x = self.one(F32, 1)
        if x:
            self.add("CumSum", [x.name, self.weight(np.array(self.pick(len(x.shape)), np.int64))], [(F32, x.shape)], exclusive=self.pick(2), reverse=self.pick(2))

    def scatter(self):
        x = self.one(F32, 1)
        if not x:
            return
        axis = self.pick(len(x.shape))
        shape = tuple(1 + self.pick(d) for d in x.shape)
        places = np.argsort(self.rng.random(shape[:axis] + (x.shape[axis],) + shape[axis + 1:]), axis).take(range(shape[axis]), axis)   # none twice
        self.add("ScatterElements", [x.name, self.weight(places.astype(np.int64)), self.numbers(*shape)], [(F32, x.shape)], axis=axis, reduction=["none", "add", "mul"][self.pick(3)])

    def tile(self):
        x = self.one(None, 1)
        if x:
            times = [1 + self.pick(3) for _ in x.shape]
            self.add("Tile", [x.name, self.weight(np.array(times, np.int64))], [(x.dtype, [d * t for d, t in zip(x.shape, times)])], exact=x.exact)

    def resize(self):
        x = self.one(F32, 4, 4)
        if x:
            sizes = [*x.shape[:2], 1 + self.pick(6), 1 + self.pick(6)]
            mode = ["nearest", "linear", "cubic"][self.pick(3)]
            self.add("Resize", [x.name, "", "", self.weight(np.array(sizes, np.int64))], [(F32, sizes)], mode=mode, coordinate_transformation_mode=["half_pixel", "asymmetric"][self.pick(2)])

    def model(self):
        read = {i for node in self.nodes for i in reads(node)}
        outputs = [v for v in self.values if v.name not in self.feeds and v.name not in read]
        return make_model(self.nodes, self.feeds, self.weights, {v.name: v.dtype for v in outputs})


G = Generator
FAMILIES = [G.unary, G.unary, G.binary, G.binary, G.compare, G.where, G.cast, G.reduce, G.softmax, G.norm, G.matmul, G.matmul, G.conv, G.pool, G.transpose, G.reshape, G.concat, G.slice, G.gather, G.pad,
            G.expand, G.split, G.arg, G.attention, G.choice, G.loop, G.scan, G.topk, G.cumsum, G.scatter, G.tile, G.resize]


def fits(a, b):
    try:
        np.broadcast_shapes(a, b)
        return True
    except ValueError:
        return False


def reads(node):
    """What a node needs: its operands, and what its graphs take from outside."""
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            own = {v.name for v in attribute.g.input} | {o for inner in attribute.g.node for o in inner.output}
            names |= {name for inner in attribute.g.node for name in reads(inner)} - own
    return names - {""}


def make_model(nodes, feeds, weights, outputs):
    used = {i for node in nodes for i in reads(node)}
    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(np.dtype(t)), None) for k, t in outputs.items()]
    graph = helper.make_graph(nodes, "random", inputs, infos, [w for w in weights if w.name in used])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def with_ranks(model, expected):
    """The outputs' types with their ranks, which ONNX asks for."""
    for info in model.graph.output:
        want = expected[info.name]
        info.CopyFrom(helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(want.dtype), [None] * want.ndim))
    return model


def expected_of(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def failure(tilewright, work, model, feeds, expected):
    """What is wrong, in a line; None: nothing."""
    path, artifact, folder = work / "model.onnx", work / "model.so", work / "out"
    onnx.save(with_ranks(model, expected), path)
    compiled = subprocess.run([tilewright, "compile", path, "-o", artifact], capture_output=True, text=True)
    if compiled.returncode:
        return f"compile ends with {compiled.returncode}: {compiled.stderr.strip().splitlines()[-1:]}"
    arguments = []
    for i, (name, value) in enumerate(feeds.items()):
        np.save(work / f"in_{i}.npy", value)
        arguments += ["--input", f"{name}={work / f'in_{i}.npy'}"]
    ran = subprocess.run([tilewright, "run", artifact, *arguments, "--threads", "2", "--output-dir", folder], capture_output=True, text=True)
    if ran.returncode:
        return f"run ends with {ran.returncode}: {ran.stderr.strip().splitlines()[-1:]}"
    for name, want in expected.items():
        have = np.load(folder / f"{name}.npy")
        if have.shape != want.shape or have.dtype != want.dtype:
            return f"{name} is {have.dtype}{have.shape}, expected {want.dtype}{want.shape}"
        if want.dtype != F32:
            if not np.array_equal(want, have):
                return f"{name} differs"
            continue
        finite = np.isfinite(want)
        span = max(1e-3, float(np.abs(want[finite]).max(initial=0)))
        if not np.array_equal(finite, np.isfinite(have)) or float(np.abs(want[finite] - have[finite]).max(initial=0)) > TOLERANCE * span:
            return f"{name} is off"
    told = subprocess.run([tilewright, "verify", artifact, path], capture_output=True, text=True)
    return None if told.returncode == 0 else f"verify ends with {told.returncode}: {(told.stderr or told.stdout).strip().splitlines()[-1:]}"


def shrink(check, model, feeds, expected):
    """The model with as few nodes as still fail: one output at a time, then values that nodes make given as inputs instead."""
    everything = dict(feeds)
    inner = [o for node in model.graph.node for o in node.output if o]
    full = onnx.ModelProto()
    full.CopyFrom(model)
    del full.graph.output[:]
    full.graph.output.extend(helper.make_tensor_value_info(name, 0, None) for name in inner)
    for info in full.graph.output:
        info.ClearField("type")
    everything.update(expected_of(full, feeds))

    def cut(nodes, outputs):
        needed, kept = set(outputs), []
        for node in reversed(nodes):
            if set(node.output) & needed:
                kept.insert(0, node)
                needed |= reads(node)
        made = {o for node in kept for o in node.output}
        weights = {w.name for w in model.graph.initializer}
        own = {name: everything[name] for name in sorted(needed) if name in everything and name not in made and name not in weights}
        return make_model(kept, own, list(model.graph.initializer), {o: everything[o].dtype for o in outputs}), own

    nodes, outputs = list(model.graph.node), [o.name for o in model.graph.output]
    for name in inner:   # the first value that is wrong
        smaller, own = cut(nodes, [name])
        if check(smaller, own, {name: everything[name]}):
            outputs = [name]
            break
    again = True
    while again:
        again = False
        for node in list(nodes):
            rest = [n for n in nodes if n is not node]
            if not set(outputs) <= {o for n in rest for o in n.output}:
                continue
            smaller, own = cut(rest, outputs)
            if len(smaller.graph.node) and check(smaller, own, {o: everything[o] for o in outputs}):
                nodes, again = list(smaller.graph.node), True
                break
    return cut(nodes, outputs)[0]


def check_reduce(tilewright, work):
    """`tilewright reduce` finds the one node that cannot be compiled."""
    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]), helper.make_node("Foo", ["b"], ["c"], domain="acme"),
             helper.make_node("Add", ["c", "a"], ["d"]), helper.make_node("Exp", ["d"], ["e"])]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("e")], value_info=[info("c"), info("d")])
    path, small = work / "foo.onnx", work / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)], ir_version=8), path)
    told = subprocess.run([tilewright, "reduce", path, "-o", small], capture_output=True, text=True)
    return told.returncode == 0 and [n.op_type for n in onnx.load(small).graph.node] == ["Foo"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--keep", type=pathlib.Path, help="where failing models go, whole and shrunk")
    args = parser.parse_args()
    failed, left_out, tool = 0, 0, args.tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if not check_reduce(tool, work):
            failed += 1
            print("FAIL tilewright reduce does not find the node that cannot be compiled")
        for seed in range(args.seed, args.seed + args.count):
            generator = Generator(seed)
            for _ in range(4 * args.nodes):
                if len(generator.nodes) < args.nodes:
                    generator.step()
            if not generator.nodes:
                continue
            model = generator.model()
            try:
                expected = expected_of(model, generator.feeds)
            except Exception as error:   # onnxruntime loses what branches take from outside now and then
                left_out += 1
                print(f"left out seed {seed}, which onnxruntime does not run: {str(error)[-160:]}", flush=True)
                continue
            wrong = failure(tool, work, model, generator.feeds, expected)
            if not wrong:
                continue
            failed += 1
            small = shrink(lambda m, f, e: failure(tool, work, m, f, e), model, generator.feeds, expected)
            print(f"FAIL seed {seed}: {wrong}; shrunk to {[n.op_type for n in small.graph.node]}", flush=True)
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                onnx.save(model, args.keep / f"seed{seed}.onnx")
                onnx.save(small, args.keep / f"seed{seed}_small.onnx")
    print(f"{args.count} graphs from seed {args.seed} on, {failed} failed, {left_out} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
