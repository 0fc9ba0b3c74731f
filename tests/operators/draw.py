"""What the families of operators draw with: element types, shapes and values, driven by ONNX's schema of the operator at an opset."""
import zlib

import ml_dtypes
import numpy as np
from onnx import TensorProto, defs, helper

UNUSED_TYPES = {"complex64", "complex128", "float6e2m3", "float6e3m2"}   # no element type of the compiler
TYPES = {name.lower(): value for name, value in TensorProto.DataType.items() if name != "UNDEFINED"}
NARROW = {"int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7), "uint4": (0, 15)}
FLOATS = ["float", "double", "float16", "bfloat16"]
STRINGS = ["", "a", "abc", "ABC", "Monday", "b c", "été", "1", "x,y"]
MAX_ELEMENTS = 600


def numpy_type(name):
    return np.dtype(object) if name == "string" else helper.tensor_dtype_to_np_dtype(TYPES[name])


def type_name(dtype):
    if dtype.kind in "OU":
        return "string"
    return TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(dtype)).lower()


def is_float(name):
    return name in FLOATS or name.startswith(("float8", "float4"))


def limits(name):
    if name in NARROW:
        return NARROW[name]
    info = np.iinfo(numpy_type(name))
    return int(info.min), int(info.max)


class Const:
    """An operand that is an initializer of the model."""
    def __init__(self, value):
        self.value = value


class Case:
    """A node with its operands: arrays, Const, lists of arrays (a sequence), or None where an optional one is absent. graph: makes the
    nodes that stand for it, of operators that take or give no tensor. definition: gives the outputs by numpy, of operators that no source has, or that
    sources do by other rules."""
    def __init__(self, draw, operands, outputs, attributes):
        self.op, self.domain, self.opset, self.version, self.index = draw.op, draw.domain, draw.opset, draw.version, draw.index
        self.operands, self.outputs, self.special = operands, outputs, draw.special
        self.attributes = {name: value for name, value in attributes.items() if value is not None}
        self.graph, self.definition = None, None

    def name(self):
        return f"{self.domain}_{self.op}_{self.index}".replace(".", "_")

    def defined(self, definition):
        """With a definition of the operands' values and the attributes."""
        self.definition = lambda: definition(*self.values(), **self.attributes)
        return self

    def values(self):
        return [o.value if isinstance(o, Const) else o for o in self.operands]

    def types(self):
        return [type_name(v.dtype) for v in self.values() if isinstance(v, np.ndarray)]

    def least_precise(self):
        """The float type of least precision among the operands, None without any."""
        floats = [t for t in self.types() if t in FLOATS]
        return numpy_type(max(floats, key=lambda t: ml_dtypes.finfo(numpy_type(t)).eps)) if floats else None

    def __str__(self):
        def text(o):
            value = o.value if isinstance(o, Const) else o
            if isinstance(value, list):
                return f"[{', '.join(map(text, value))}]"
            return "-" if o is None else f"{'const ' * isinstance(o, Const)}{type_name(value.dtype)}{list(value.shape)}"
        attributes = {k: v for k, v in self.attributes.items() if isinstance(v, (int, float, str)) or isinstance(v, list) and len(v) < 9}
        return f"opset {self.opset}: ({', '.join(map(text, self.operands))}) {attributes}" + " with special values" * self.special


class Draw:
    """The generator of one case."""
    def __init__(self, seed, domain, op, index, opsets):
        self.op, self.domain, self.index = op, domain, index
        self.rng = np.random.default_rng([seed, zlib.crc32(f"{domain}.{op}".encode()), index])
        self.schema, self.opset, self.version, self.bound = None, 1, 1, {}
        if opsets:   # (version, first opset, last opset) of each version: all of them in turn
            self.version, first, last = opsets[index % len(opsets)]
            self.opset = first + self.pick(last - first + 1)
            self.schema = defs.get_schema(op, self.opset, domain)
        self.special = self.chance(0.4)

    def pick(self, count):
        return int(self.rng.integers(count))

    def between(self, low, high):
        """Both may come."""
        return int(self.rng.integers(low, high + 1))

    def among(self, choices):
        return choices[self.pick(len(choices))]

    def chance(self, share):
        return bool(self.rng.random() < share)

    def maybe(self, value, share=0.6):
        """An attribute that may be absent."""
        return value if self.chance(share) else None

    def has(self, attribute):
        return attribute in self.schema.attributes

    def real(self, low=-2.0, high=2.0):
        return float(np.float32(self.rng.uniform(low, high)))

    def plain(self):
        """No NaN, infinities and limits in what follows: they say nothing here, or are no valid data."""
        self.special = False
        return self

    def parameter(self, index, output=False):
        parameters = self.schema.outputs if output else self.schema.inputs
        return parameters[min(index, len(parameters) - 1)]

    def types(self, index, output=False):
        return sorted(t[7:-1] for t in self.parameter(index, output).types if t.startswith("tensor(") and t[7:-1] not in UNUSED_TYPES)

    def type(self, index=0, only=None, output=False):
        """The element type of an input, the same for all that share its variable; float32 comes more often than another."""
        key = self.parameter(index, output).type_str
        if key not in self.bound:
            choices = [t for t in self.types(index, output) if only is None or t in only]
            self.bound[key] = "float" if "float" in choices and self.chance(0.4) else self.among(choices)
        return self.bound[key]

    def shape(self, low=0, high=4, most=6, zero=False):
        rank = self.between(low, high)
        shape = [self.among([1, 2, 3, 3, 4, 5, 7, most]) for _ in range(rank)]
        while np.prod(shape) > MAX_ELEMENTS:
            shape[int(np.argmax(shape))] //= 2
        if zero and shape and self.chance(0.05):
            shape[self.pick(len(shape))] = 0
        return tuple(shape)

    def broadcast(self, count, high=4, zero=False):
        """Shapes that broadcast to one another."""
        whole, shapes = self.shape(0, high, zero=zero), []
        for _ in range(count):
            own = tuple(1 if self.chance(0.25) else d for d in whole)
            shapes.append(own[self.pick(len(own) + 1):] if self.chance(0.3) else own)
        if self.chance(0.4):
            shapes[self.pick(count)] = whole
        return shapes

    def axis(self, rank, extra=0):
        """An axis counted from either end."""
        return self.between(-rank - extra, rank + extra - 1)

    def axes(self, rank, least=0):
        chosen = self.rng.permutation(rank)[:self.between(least, max(rank, least))]
        return [int(a) - rank * self.pick(2) for a in chosen]

    def values(self, name, shape, low=-4, high=4, special=None, whole=False, huge=True):
        """Numbers around 0, among them special ones where the case has any. whole: integers as floats, so that
        ties and equals occur. huge: also those whose sum is infinite in the type itself."""
        special = self.special if special is None else special
        shape = tuple(int(d) for d in shape)
        if name == "string":
            return np.array([self.among(STRINGS) for _ in range(int(np.prod(shape)))], object).reshape(shape)
        if name == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if name == "float8e8m0":
            return (2.0 ** self.rng.integers(-3, 4, shape)).astype(numpy_type(name))
        if is_float(name):
            return self.floats(name, shape, low, high, special, whole, huge)
        least, most = limits(name)
        numbers = self.rng.integers(max(low, least), min(high, most) + 1, shape)
        if special:
            ends = np.array([least, most, least + 1, most - 1, 0], numpy_type(name) if name not in NARROW else np.int64)
            return np.where(self.rng.random(shape) < 0.2, self.rng.choice(ends, shape), numbers.astype(ends.dtype)).astype(numpy_type(name))
        return np.asarray(numbers).astype(numpy_type(name))

    def floats(self, name, shape, low, high, special, whole, huge):
        numbers = self.rng.integers(low, high + 1, shape) if whole else np.clip(self.rng.normal((low + high) / 2, (high - low) / 5, shape), low, high)
        numbers = np.asarray(numbers, np.float64)
        if special:
            info = ml_dtypes.finfo(numpy_type(name))
            ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, float(info.smallest_subnormal), -float(info.tiny) / 2, 0.5, 1.5, 2.5, -0.5, -1.5,
                    float(info.eps)] + [float(info.max), float(info.min), 3e4, -3e4] * huge
            numbers = np.where(self.rng.random(shape) < 0.25, self.rng.choice(np.array(ends), shape), numbers)
        with np.errstate(all="ignore"):
            return np.asarray(numbers).astype(numpy_type(name))

    def tensor(self, index=0, shape=None, only=None, **kinds):
        """A value of an input's type."""
        return self.values(self.type(index, only), self.shape() if shape is None else shape, **kinds)

    def ints(self, values, shape=None):
        return np.array(values, np.int64).reshape(shape if shape is not None else (-1,))

    def case(self, *operands, outputs=1, **attributes):
        operands = list(operands)
        while operands and operands[-1] is None:
            operands.pop()
        return Case(self, operands, outputs, attributes)


FAMILIES = {}   # (domain, operator) -> function of a Draw that gives a Case


def operators(names, domain=""):
    def add(function):
        for name in names.split():
            assert (domain, name) not in FAMILIES, name
            FAMILIES[domain, name] = function
        return function
    return add
