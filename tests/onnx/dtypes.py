#!/usr/bin/env python3
"""Operators in every element type that their ONNX schema allows, against onnx's reference evaluator: one model an operator, with a node a type.

    dtypes.py --tilewright BUILD/tilewright [--only OP,...]

What is not supported or differs must stand in dtypes_missing.txt, a line "Op type"; a line that has become right is an error too.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = pathlib.Path(__file__).resolve().parent
OPSET = 24
NAMES = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE, "bool": TensorProto.BOOL}
NAMES.update({name.lower(): value for name, value in TensorProto.DataType.items() if name.lower() not in ("float", "double", "bool")})
SKIPPED = {"string", "complex64", "complex128", "float6e2m3", "float6e3m2"}
STORAGE = {value for name, value in NAMES.items() if name.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2"))}


def dtype_of(name):
    return helper.tensor_dtype_to_np_dtype(NAMES[name])


def values(name, shape, seed=0, low=-4, high=4):
    """Numbers that every type of the kind holds: small, integers and halves."""
    random, dtype = np.random.default_rng(seed), dtype_of(name)
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if name.startswith(("int", "uint")):
        narrow = name in ("int4", "int2", "uint4", "uint2")
        start = 0 if name.startswith("u") else -1 if narrow else low
        return random.integers(start, 2 if narrow else high + 1, shape).astype(dtype)
    if name == "float8e8m0":
        return (2.0 ** random.integers(-2, 3, shape)).astype(dtype)
    return (random.integers(2 * low, 2 * high + 1, shape) / 2).astype(np.float32).astype(dtype)


def nonzero(name, shape, seed=0):
    v = values(name, shape, seed)
    return np.where(v == 0, np.ones_like(v), v)


def positive(name, shape, seed=0):
    return values(name, shape, seed, low=1 if not name.startswith(("float", "double", "bfloat")) else 1)


class Case:
    """A node of one type: its operands (arrays are inputs, Const are initializers) and attributes."""

    def __init__(self, op, operands, outputs=1, **attributes):
        self.op, self.operands, self.outputs, self.attributes = op, operands, outputs, attributes


class Const:
    def __init__(self, array):
        self.array = np.asarray(array)


def unary(make=values):
    return lambda op, t: [Case(op, [make(t, (3, 5))])]


def binary(right=values, left=values):
    return lambda op, t: [Case(op, [left(t, (3, 5), 1), right(t, (3, 5), 2)]), Case(op, [left(t, (3, 5), 1), right(t, (5,), 3)])]


def reduction(op, t):
    return [Case(op, [values(t, (2, 3, 4), 1, low=-2, high=2), Const(np.array([1], np.int64))]),
            Case(op, [positive(t, (2, 3), 2), Const(np.array([0, 1], np.int64))], keepdims=0)]


def mixed_pow(op, t):
    exponents = [e for e in ("float", "int32", "int64", "double", "uint8") if e]
    return [Case(op, [positive(t, (3, 5), 1), values(e, (3, 5), 2, low=0, high=3)]) for e in exponents]


def matrices(op, t):
    return [Case(op, [values(t, (2, 3, 4), 1), values(t, (4, 5), 2)])]


def convolution(op, t):
    return [Case(op, [values(t, (1, 2, 5, 5), 1), values(t, (3, 2, 3, 3) if op == "Conv" else (2, 3, 3, 3), 2)], pads=[1, 1, 1, 1])]


def pool(op, t):
    return [Case(op, [values(t, (1, 2, 5, 5), 1)], kernel_shape=[3, 2], strides=[2, 1])]


def clip(op, t):
    return [Case(op, [values(t, (3, 5)), values(t, (), 0) * 0 + np.asarray(1).astype(dtype_of(t)), np.asarray(2).astype(dtype_of(t))])]


I64 = np.int64
RECIPES = {
    **dict.fromkeys("Abs Neg Sign Floor Ceil Round Sin Cos Tan Atan Exp Erf Tanh Sigmoid Relu IsNaN IsInf Not BitwiseNot Identity Softplus Softsign "
                    "Gelu Mish HardSwish HardSigmoid Elu Celu Selu LeakyRelu ThresholdedRelu Shrink Swish Sinh Cosh Asinh Reciprocal".split(), unary()),
    **dict.fromkeys("Sqrt Log Acosh".split(), unary(positive)),
    **dict.fromkeys("Add Sub Mul Equal Less Greater LessOrEqual GreaterOrEqual And Or Xor BitwiseAnd BitwiseOr BitwiseXor PRelu".split(), binary()),
    "Div": binary(nonzero), "Mod": lambda op, t: [Case(op, c.operands, fmod=int(t.startswith(("float", "double", "bfloat")))) for c in binary(nonzero)(op, t)],
    "Pow": mixed_pow,
    "BitShift": lambda op, t: [Case(op, [positive(t, (3, 5), 1), positive(t, (3, 5), 2)], direction=d) for d in ("LEFT", "RIGHT")],
    **dict.fromkeys("Max Min Sum Mean".split(), lambda op, t: [Case(op, [values(t, (3, 5), i) for i in range(3)])]),
    **dict.fromkeys("ReduceMax ReduceMin ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp".split(), reduction),
    **dict.fromkeys("ArgMax ArgMin".split(), lambda op, t: [Case(op, [values(t, (3, 5), 1)], axis=1), Case(op, [values(t, (3, 5), 2)], axis=0, select_last_index=1)]),
    **dict.fromkeys("Softmax LogSoftmax Hardmax".split(), lambda op, t: [Case(op, [values(t, (3, 5), 1)], axis=-1)]),
    "MatMul": matrices,
    "Gemm": lambda op, t: [Case(op, [values(t, (3, 4), 1), values(t, (4, 5), 2), values(t, (5,), 3)])],
    "Conv": convolution, "ConvTranspose": convolution,
    **dict.fromkeys("MaxPool AveragePool LpPool".split(), pool),
    **dict.fromkeys("GlobalMaxPool GlobalAveragePool".split(), lambda op, t: [Case(op, [values(t, (1, 2, 4, 4), 1)])]),
    "Clip": clip,
    "Where": lambda op, t: [Case(op, [values("bool", (3, 5), 1), values(t, (3, 5), 2), values(t, (5,), 3)])],
    "Concat": lambda op, t: [Case(op, [values(t, (2, 3), 1), values(t, (2, 2), 2)], axis=1)],
    "Transpose": lambda op, t: [Case(op, [values(t, (2, 3, 4), 1)], perm=[2, 0, 1])],
    "Reshape": lambda op, t: [Case(op, [values(t, (2, 6), 1), Const(np.array([3, 4], I64))])],
    "Expand": lambda op, t: [Case(op, [values(t, (2, 1), 1), Const(np.array([2, 4], I64))])],
    "Squeeze": lambda op, t: [Case(op, [values(t, (2, 1), 1), Const(np.array([1], I64))])],
    "Unsqueeze": lambda op, t: [Case(op, [values(t, (2, 3), 1), Const(np.array([1], I64))])],
    "Flatten": lambda op, t: [Case(op, [values(t, (2, 3, 2), 1)])],
    "Slice": lambda op, t: [Case(op, [values(t, (4, 6), 1), Const(np.array([3, 1], I64)), Const(np.array([0, 5], I64)), Const(np.array([0, 1], I64)), Const(np.array([-1, 2], I64))])],
    "Tile": lambda op, t: [Case(op, [values(t, (2, 3), 1), Const(np.array([2, 1], I64))])],
    "Gather": lambda op, t: [Case(op, [values(t, (4, 3), 1), np.array([[0, 2], [3, -1]], I64)])],
    "Pad": lambda op, t: [Case(op, [values(t, (2, 3), 1), Const(np.array([1, 0, 0, 2], I64))])],
    "Split": lambda op, t: [Case(op, [values(t, (4, 3), 1)], outputs=2, num_outputs=2)],
    "DepthToSpace": lambda op, t: [Case(op, [values(t, (1, 8, 2, 3), 1)], blocksize=2)],
    "SpaceToDepth": lambda op, t: [Case(op, [values(t, (1, 2, 4, 6), 1)], blocksize=2)],
    "Trilu": lambda op, t: [Case(op, [values(t, (4, 4), 1)])],
    "Resize": lambda op, t: [Case(op, [values(t, (1, 1, 3, 4), 1), None, Const(np.array([1, 1, 2, 2], np.float32))], mode=m) for m in ("nearest", "linear")],
    "OneHot": lambda op, t: [Case(op, [np.array([0, 2], I64), Const(np.array(3, I64)), values(t, (2,), 1)])],
    "Range": lambda op, t: [Case(op, [Const(np.asarray(v).astype(dtype_of(t))) for v in (1, 9, 2)])],
    "CumSum": lambda op, t: [Case(op, [values(t, (3, 5), 1, low=-1, high=1), Const(np.array(1, I64))])],
    "BatchNormalization": lambda op, t: [Case(op, [values(t, (2, 3, 4), 1), *[positive(t, (3,), s) for s in (2, 3, 4, 5)]])],
    "LayerNormalization": lambda op, t: [Case(op, [values(t, (2, 3, 4), 1), values(t, (4,), 2), values(t, (4,), 3)])],
    "InstanceNormalization": lambda op, t: [Case(op, [values(t, (2, 3, 4), 1), values(t, (3,), 2), values(t, (3,), 3)])],
    "GroupNormalization": lambda op, t: [Case(op, [values(t, (2, 4, 3), 1), values(t, (4,), 2), values(t, (4,), 3)], num_groups=2)],
    "LRN": lambda op, t: [Case(op, [values(t, (5, 5, 2, 2), 1)], size=3)],
    "LpNormalization": lambda op, t: [Case(op, [positive(t, (2, 5), 1)])],
    "Cast": lambda op, t: [Case(op, [values(t, (3, 5), 1, low=0 if to.startswith("uint") else -1, high=1)], to=NAMES[to]) for to in types_of("Cast", 1)],
    "QuantizeLinear": lambda op, t: [Case(op, [values(t, (3, 4), 1), values("float", (), 0) * 0 + np.float32(0.5)], output_dtype=o)
                                     for o in (TensorProto.UINT8, TensorProto.INT16, TensorProto.INT4, TensorProto.UINT2, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT4E2M1)],
    "DequantizeLinear": lambda op, t: [Case(op, [values(t, (3, 4), 1), np.float32(0.5).reshape(())])],
}


def types_of(op, output=0):
    """Types of the operand that the operator is about: of input 0, or what Cast gives."""
    schema = defs.get_schema(op, OPSET)
    parameter = schema.outputs[0] if output or not schema.inputs else schema.inputs[{"Where": 1, "OneHot": 2}.get(op, 0)]
    names = [name[7:-1] for name in parameter.types if name.startswith("tensor(")]
    return sorted(n for n in names if n not in SKIPPED)


class Model:
    """The nodes of one operator, a list of (type, expected outputs) along."""

    def __init__(self, op):
        self.op, self.nodes, self.inputs, self.initializers, self.outputs, self.expected, self.owner = op, [], {}, [], [], {}, {}

    def add(self, t, case):
        prefix = f"n{len(self.nodes)}"
        names, feeds, constants = [], {}, []
        for i, operand in enumerate(case.operands):
            if operand is None:
                names.append("")
                continue
            name = f"{prefix}_{i}"
            names.append(name)
            if isinstance(operand, Const):
                constants.append(numpy_helper.from_array(operand.array, name))
            else:
                feeds[name] = np.asarray(operand)
        outputs = [f"{prefix}_y{k}" for k in range(case.outputs)]
        node = helper.make_node(case.op, names, outputs, name=prefix, **case.attributes)
        results = self.reference(node, feeds, constants, outputs)
        self.nodes.append((t, node))
        self.inputs.update(feeds)
        self.initializers += constants
        for name, result in zip(outputs, results):
            self.expected[name] = np.asarray(result)
            self.owner[name] = prefix

    def reference(self, node, feeds, constants, outputs):
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(self.proto([node], feeds, constants, outputs)).run(None, feeds)

    @staticmethod
    def proto(nodes, feeds, constants, outputs, expected=None):
        ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
        outs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(expected[n].dtype), expected[n].shape) if expected else
                onnx.ValueInfoProto(name=n) for n in outputs]
        return helper.make_model(helper.make_graph(nodes, "g", ins, outs, constants), opset_imports=[helper.make_opsetid("", OPSET)], ir_version=12)

    def without(self, names):
        """Drops nodes by name."""
        self.nodes = [(t, n) for t, n in self.nodes if n.name not in names]
        used = {i for _, n in self.nodes for i in n.input}
        made = {o for _, n in self.nodes for o in n.output}
        self.inputs = {n: v for n, v in self.inputs.items() if n in used}
        self.initializers = [c for c in self.initializers if c.name in used]
        self.expected = {n: v for n, v in self.expected.items() if n in made}

    def save(self, path):
        onnx.save(self.proto([n for _, n in self.nodes], self.inputs, self.initializers, list(self.expected), self.expected), path)


def stored(array):
    return array.view(np.uint8) if helper.np_dtype_to_tensor_dtype(array.dtype) in STORAGE else array


def loaded(path, like):
    array = np.load(path)
    return array.view(like.dtype) if array.dtype != like.dtype and array.dtype.itemsize == like.dtype.itemsize else array


def differs(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    kind = helper.np_dtype_to_tensor_dtype(want.dtype)
    real = want.dtype.kind == "f" or kind == TensorProto.BFLOAT16
    tolerance = {TensorProto.FLOAT16: 3e-3, TensorProto.BFLOAT16: 3e-2}.get(kind, 1e-4) if real else 0
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.abs(a - b) > tolerance * np.maximum(1, np.abs(b))
    wrong = off & ~((a == b) | (np.isnan(a) & np.isnan(b))) | (np.isnan(a) != np.isnan(b))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"{a[at]} for {b[at]} at {list(at)}"


def refused_nodes(tilewright, path):
    """Names of the nodes that the importer refuses, with the reasons."""
    told = subprocess.run([tilewright, "inspect", path, "--json"], capture_output=True, text=True)
    try:
        gaps = json.loads(told.stdout).get("gaps", [])
    except json.JSONDecodeError:
        return {}
    return {node: gap["problem"] for gap in gaps for node in gap["nodes"]}


class Runner:
    def __init__(self, tilewright, work):
        self.tilewright, self.work = tilewright, pathlib.Path(work)

    def check(self, op):
        """{type: what is wrong} of one operator."""
        model, wrong = Model(op), {}
        for t in types_of(op):
            for case in RECIPES[op](op, t):
                try:
                    model.add(t, case)
                except Exception as problem:   # the reference has gaps of its own
                    print(f"  {op} {t}: no reference ({type(problem).__name__})")
        for _ in range(4):
            if not model.nodes:
                return wrong
            problem = self.run(model)
            if problem is None:
                break
            wrong.update({t: problem[n.name] for t, n in model.nodes if n.name in problem})
            model.without(problem)
        kinds = {n.name: t for t, n in model.nodes}
        for name, want in model.expected.items():
            told = differs(loaded(self.work / "out" / f"{name}.npy", want), want)
            if told:
                wrong[kinds[model.owner[name]]] = told
        return wrong

    def run(self, model):
        """None, or the nodes that do not compile."""
        path, artifact = self.work / "m.onnx", self.work / "m.so"
        model.save(path)
        told = subprocess.run([self.tilewright, "compile", path, "-t", "host", "-o", artifact, "--name", "model"], capture_output=True, text=True)
        if told.returncode:
            refused = refused_nodes(self.tilewright, path)
            return refused or {n.name: told.stderr.strip().splitlines()[0][:150] for _, n in model.nodes}
        np.savez(self.work / "in.npz", **{n: stored(v) for n, v in model.inputs.items()})
        inputs = ["--input", self.work / "in.npz"] if model.inputs else []
        told = subprocess.run([self.tilewright, "run", artifact, *inputs, "--output-dir", self.work / "out"], capture_output=True, text=True)
        return None if told.returncode == 0 else {n.name: "run: " + told.stderr.strip()[:150] for _, n in model.nodes}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    ops = options.only.split(",") if options.only else sorted(RECIPES)
    missing_file = HERE / "dtypes_missing.txt"
    known = {line.strip() for line in missing_file.read_text().splitlines() if line.strip() and not line.startswith("#")} if missing_file.exists() else set()
    found = {}
    with tempfile.TemporaryDirectory() as work:
        runner = Runner(pathlib.Path(options.tilewright).resolve(), work)
        for op in ops:
            wrong = runner.check(op)
            for t, why in sorted(wrong.items()):
                found[f"{op} {t}"] = why
                print(f"{op} {t}: {why}" + (" (known)" if f"{op} {t}" in known else ""), flush=True)
    new = sorted(set(found) - known)
    healed = sorted(k for k in known - set(found) if k.split()[0] in ops)
    for line in healed:
        print(f"{line}: in dtypes_missing.txt, and right")
    print(f"{len(ops)} operators: {len(found)} types of an operator are missing or wrong, {len(new)} of them new")
    return 1 if new or healed else 0


if __name__ == "__main__":
    sys.exit(main())
