"""Random graphs: what a generator knows of values, and what the families of operators (elementwise, shapes, layers, control,
integers) draw with. An extent may be free: then it has another value in a second run, and nothing may be baked into a constant
that holds for the first value alone."""
import math
import operator

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MOST_ELEMENTS, MOST_OF_NETWORKS = 4096, 16384   # of a value
OPSETS = (("", 21), ("com.microsoft", 1), ("functions", 1))
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
    """An extent with its values in the first and the second run, which may be the same, and a far one that no run has, so that two
    formulas which only agree in the runs are not equal. Arithmetic is done for all. The name is a dimension's; what is computed of
    dimensions has none."""
    def __new__(cls, first, second, far, name=None):
        self = super().__new__(cls, first)
        self.second, self.far, self.name = int(second), int(far), name
        return self

    def __eq__(self, other):
        return isinstance(other, Free) and int(self) == int(other) and self.second == other.second and self.far == other.far

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((int(self), self.second, self.far))

    def with_each(self, operation, other):
        return Free(operation(int(self), int(other)), operation(self.second, second_of(other)), operation(self.far, getattr(other, "far", other)))

    def __add__(self, other):
        return self.with_each(operator.add, other)

    def __sub__(self, other):
        return self.with_each(operator.sub, other)

    def __rsub__(self, other):
        return self.with_each(lambda own, others: others - own, other)

    def __mul__(self, other):
        return self.with_each(operator.mul, other)

    def __floordiv__(self, other):
        return self.with_each(operator.floordiv, other)

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


# onnxruntime has polynomials for these, which are off by a twentieth for subnormal numbers. Near 0 HardSigmoid is the difference of
# nearly equal numbers.
POLYNOMIALS = {"HardSigmoid", "Tanh", "Sigmoid", "Erf", "Gelu", "Softplus", "Mish", "LSTM", "GRU"}
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -3e-42)   # the last two are subnormal in f32


NETWORKS = ("pictures", "sequences")


class Generator:
    """With its seed it draws types, free extents, inputs and nodes. style: what the inputs are like; `mixed` are small tensors of any
    type and rank, `pictures` and `sequences` what networks take."""
    def __init__(self, rng, style, of_f32=False, subnormals=True):
        self.rng, self.style, self.of_f32, self.subnormals = rng, style, of_f32, subnormals
        self.nodes, self.weights, self.values, self.inputs, self.numbers_of = [], [], [], [], {}
        # Most graphs have one rare type at the most, so that onnxruntime, which lacks many kernels of those, runs most graphs.
        self.rare = [None, None, F16, F64, BF16, *INTEGERS][self.pick(13)] if style == "mixed" and self.pick(2) else None
        self.frees = self.drawn_dims()
        self.most = MOST_OF_NETWORKS if style in NETWORKS else MOST_ELEMENTS
        for shape, dtype in getattr(self, f"{style}_inputs")():
            value = Value(f"x{len(self.inputs)}", F32 if dtype == BF16 else dtype, shape, True)
            self.inputs.append(value)
            self.values.append(value)
            if dtype == BF16:
                self.add("Cast", [value.name], [(BF16, shape)], exact=True, to=onnx_type(BF16))
        used = {d.name for v in self.inputs for d in v.shape if is_free(d)}
        self.frees = [free for free in self.frees if free.name in used]

    def drawn_dims(self):
        """Free dimensions, in most graphs none. Now and then two names have the same values."""
        if self.pick(3):
            return []
        firsts = [2 + int(i) for i in self.rng.permutation(5)[:1 + self.pick(3)]]
        if len(firsts) > 1 and self.pick(4) == 0:
            firsts[1] = firsts[0]
        return [Free(first, first + 1 + first % 3, 1000 * first, name) for first, name in zip(firsts, ("n", "rows", "length"))]

    def extent(self, most):
        return self.among(self.frees) if self.frees and self.pick(3) == 0 else 1 + self.pick(most)

    def mixed_inputs(self):
        for _ in range(1 + self.pick(3)):
            dtype = [F32, F32, F32, I64, self.rare or F32, self.rare or F32][self.pick(6)]
            yield [self.extent(6) for _ in range(self.pick(5))], dtype

    special_inputs = mixed_inputs

    def pictures_inputs(self):
        batch, size, dtype = self.extent(2), 3 + self.pick(10), self.network_type()
        for _ in range(1 + self.pick(2)):
            plane = [self.extent(12) if self.pick(4) == 0 else size for _ in range(2)]
            places = max(math.prod(sizes([batch, *plane], second)) for second in (False, True))
            yield [batch, min(self.width(16), self.most // places), *plane], dtype

    def sequences_inputs(self):
        batch, length, dtype = self.extent(3), self.extent(8), self.network_type()
        for _ in range(1 + self.pick(2)):
            yield [batch, length, 1 + self.width(23)], dtype

    def width(self, most):
        """Channels or columns; in networks now and then as many as fill registers."""
        return self.among([16, 24, 32, 48, 64]) if self.style in NETWORKS and self.pick(3) == 0 else 1 + self.pick(most)

    def network_type(self):
        return F32 if self.of_f32 else [F32, F32, F32, F32, F32, F16, BF16][self.pick(7)]

    def feeds(self, second):
        """Data of the inputs, in the first or the second run."""
        rng = np.random.default_rng(self.pick(1 << 30))
        return {v.name: np.asarray(self.spoiled(self.draw(v.dtype, sizes(v.shape, second), rng), rng)) for v in self.inputs}

    def spoiled(self, value, rng):
        """Of special graphs: some elements are what few programs think of."""
        if self.style != "special" or value.dtype not in FLOATS:
            return value
        subnormals = self.subnormals and not any(node.op_type in POLYNOMIALS for node in self.nodes)
        values = SPECIAL if subnormals else SPECIAL[:-2] + (0.0, -0.0)
        return np.where(rng.random(value.shape) < 0.3, rng.choice(values, value.shape).astype(value.dtype), value)

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
        """A constant of small numbers; now and then one that the graph has already."""
        if any(is_free(d) for d in shape):
            raise Unfit
        known = self.numbers_of.setdefault((str(dtype), tuple(shape)), [])
        if known and self.pick(4) == 0:
            return self.among(known)
        known.append(self.weight(self.draw(dtype, shape, least=1), dtype))
        return known[-1]

    def ints(self, values):
        """A constant vector of i64, or with a number alone a scalar."""
        if any(is_free(d) for d in (values if isinstance(values, (list, tuple)) else [values])):
            raise Unfit
        return self.weight(np.array(values, np.int64))

    def add(self, op, inputs, outs, exact=False, **attributes):
        """outs: (dtype, shape) of each output. Returns the last one's value."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(outs))]
        if any(math.prod(sizes(shape, s)) > self.most for _, shape in outs for s in (False, True)):
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
            for names in self.numbers_of.values():
                names[:] = [name for name in names if int(name[1:]) < before[2]]

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
    given = [helper.make_tensor_value_info(k, onnx_type(t), [d.name if is_free(d) else d for d in shape])
             for k, (t, shape) in inputs.items()]
    made = [helper.make_tensor_value_info(k, onnx_type(t), [None] * rank) for k, (t, rank) in outputs.items()]
    graph = helper.make_graph(nodes, "random", given, made, [w for w in weights if w.name in used])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(name, version) for name, version in OPSETS], ir_version=10)
