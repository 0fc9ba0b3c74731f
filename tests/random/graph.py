"""Random graphs: what a generator knows of values, and what the families of operators (elementwise, shapes, layers, control,
integers) draw with. An extent may be free: then it has another value in a second run, and nothing may be baked into a constant
that holds for the first value alone."""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MAX_ELEMENTS = 4096
BF16 = "bf16"   # NumPy has none: such values are within a graph only
F32, F16, F64 = (np.dtype(t) for t in (np.float32, np.float16, np.float64))
I8, U8, I16, U16, I32, U32, I64, U64 = (np.dtype(t) for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"))
BOOL = np.dtype(np.bool_)
FLOATS, INTEGERS = (F32, F16, F64, BF16), (I8, U8, I16, U16, I32, U32, I64, U64)


def onnx_type(dtype):
    return TensorProto.BFLOAT16 if dtype == BF16 else helper.np_dtype_to_tensor_dtype(dtype)


class Unfit(Exception):
    """What a family drew cannot be: a constant would hold for one value of a free extent alone, or there are too many elements."""


class Free(int):
    """An extent with its values in the first and the second run, which may be the same. Arithmetic is done for both."""
    def __new__(cls, first, second):
        self = super().__new__(cls, first)
        self.second = int(second)
        return self

    def __eq__(self, other):
        return isinstance(other, Free) and int(self) == int(other) and self.second == other.second

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((int(self), self.second))

    def __add__(self, other):
        return Free(int(self) + int(other), self.second + second_of(other))

    def __sub__(self, other):
        return Free(int(self) - int(other), self.second - second_of(other))

    def __rsub__(self, other):
        return Free(int(other) - int(self), second_of(other) - self.second)

    def __mul__(self, other):
        return Free(int(self) * int(other), self.second * second_of(other))

    def __floordiv__(self, other):
        return Free(int(self) // int(other), self.second // second_of(other))

    __radd__, __rmul__ = __add__, __mul__


def second_of(extent):
    return extent.second if isinstance(extent, Free) else int(extent)


def is_free(extent):
    return isinstance(extent, Free)


def sizes(shape, second):
    return [second_of(d) if second else int(d) for d in shape]


def broadcast(a, b):
    """The shape of both together; None: they do not fit."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b))
    shape = tuple(y if x == 1 else x if y == 1 or x == y else None for x, y in pairs)
    return None if None in shape else shape


class Value:
    """`exact`: equal to the bit whatever the order of sums, so that it may be rounded, compared and sorted."""
    def __init__(self, name, dtype, shape, exact):
        self.name, self.dtype, self.shape, self.exact = name, dtype, tuple(shape), exact


class Generator:
    """With its seed it draws types, free extents, inputs and nodes."""
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.values, self.inputs = [], [], [], []
        # Most graphs have one rare type at the most, so that onnxruntime, which lacks many kernels of those, runs most graphs.
        self.rare = [None, None, F16, F64, BF16, *INTEGERS][self.pick(13)] if self.pick(2) else None
        first = 2 + self.pick(5)
        self.free = Free(first, first + 1 + self.pick(3)) if self.pick(3) == 0 else None   # None: all extents are fixed
        for i in range(1 + self.pick(3)):
            dtype = [F32, F32, F32, I64, self.rare or F32, self.rare or F32][self.pick(6)]
            shape = [self.free if self.free and self.pick(3) == 0 else 1 + self.pick(6) for _ in range(self.pick(5))]
            value = Value(f"x{i}", F32 if dtype == BF16 else dtype, shape, True)
            self.inputs.append(value)
            self.values.append(value)
            if dtype == BF16:
                self.add("Cast", [value.name], [(BF16, shape)], exact=True, to=onnx_type(BF16))
        if not any(is_free(d) for v in self.inputs for d in v.shape):
            self.free = None

    def feeds(self, second):
        """Data of the inputs, in the first or the second run."""
        rng = np.random.default_rng(self.pick(1 << 30))
        return {v.name: np.asarray(self.draw(v.dtype, sizes(v.shape, second), rng)) for v in self.inputs}

    def draw(self, dtype, shape, rng=None, least=None):
        rng = rng or self.rng
        if dtype in FLOATS:
            return (rng.standard_normal(shape) * (1 if least is None else 0.5)).astype(F32 if dtype == BF16 else dtype)
        return rng.integers((0 if dtype.kind == "u" else -3) if least is None else least, 4, shape).astype(dtype)

    def pick(self, count):
        return int(self.rng.integers(count))

    def among(self, choices):
        return choices[self.pick(len(choices))]

    def one(self, dtypes=None, rank=0, most=9, exact=False):
        found = [v for v in self.values
                 if (dtypes is None or v.dtype in dtypes) and rank <= len(v.shape) <= most and v.exact >= exact]
        return self.among(found) if found else None

    def weight(self, value, dtype=None):
        name = f"w{len(self.weights)}"
        if dtype == BF16:
            value = np.asarray(value, F32)
            self.weights.append(helper.make_tensor(name, TensorProto.BFLOAT16, value.shape, value.ravel().tolist()))
        else:
            self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def numbers(self, *shape, dtype=F32):
        """A constant of small numbers."""
        if any(is_free(d) for d in shape):
            raise Unfit
        return self.weight(self.draw(dtype, shape, least=1), dtype)

    def ints(self, values):
        """A constant vector of i64, or with a number alone a scalar."""
        if any(is_free(d) for d in (values if isinstance(values, (list, tuple)) else [values])):
            raise Unfit
        return self.weight(np.array(values, np.int64))

    def add(self, op, inputs, outs, exact=False, **attributes):
        """outs: (dtype, shape) of each output. Returns the last one's value."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(outs))]
        if any(math.prod(sizes(shape, s)) > MAX_ELEMENTS for _, shape in outs for s in (False, True)):
            raise Unfit
        self.nodes.append(helper.make_node(op, inputs, names, f"n{len(self.nodes)}", **attributes))
        self.values += [Value(name, dtype, shape, exact) for name, (dtype, shape) in zip(names, outs)]
        return self.values[-1]

    def step(self, families):
        """A family draws operands that fit; nothing happens where there are none."""
        before = len(self.nodes), len(self.values), len(self.weights)
        try:
            self.among(families)(self)
        except Unfit:
            del self.nodes[before[0]:], self.values[before[1]:], self.weights[before[2]:]

    def finish(self):
        """The model: what no node reads is an output, and no output is bf16."""
        read = {i for node in self.nodes for i in reads(node)}
        for v in [v for v in self.values if v.dtype == BF16 and v.name not in read]:
            self.add("Cast", [v.name], [(F32, v.shape)], to=TensorProto.FLOAT)
            read.add(v.name)
        own = {v.name for v in self.inputs}
        outputs = {v.name: (v.dtype, len(v.shape)) for v in self.values if v.name not in own and v.name not in read}
        return make_model(self.nodes, {v.name: (v.dtype, v.shape) for v in self.inputs}, self.weights, outputs)

    def least_precise(self):
        types = {v.dtype for v in self.values}
        return BF16 if BF16 in types else F16 if F16 in types else F32


def reads(node):
    """What a node needs: its operands, and what its graphs take from outside."""
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            own = {v.name for v in attribute.g.input} | {o for inner in attribute.g.node for o in inner.output}
            names |= {name for inner in attribute.g.node for name in reads(inner)} - own
    return names - {""}


def make_model(nodes, inputs, weights, outputs):
    """inputs: (dtype, shape) of each name; outputs: (dtype, rank) of each."""
    used = {i for node in nodes for i in reads(node)}
    given = [helper.make_tensor_value_info(k, onnx_type(t), ["n" if is_free(d) else d for d in shape])
             for k, (t, shape) in inputs.items()]
    made = [helper.make_tensor_value_info(k, onnx_type(t), [None] * rank) for k, (t, rank) in outputs.items()]
    graph = helper.make_graph(nodes, "random", given, made, [w for w in weights if w.name in used])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
