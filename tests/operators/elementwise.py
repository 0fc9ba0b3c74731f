"""Operators that compute each element by itself, and casts."""
import definitions
import extremes
import numpy as np
from draw import TYPES, UNUSED_TYPES, Const, is_float, limits, numpy_type, operators


@operators("Abs Neg Sign Floor Ceil Round Sqrt Reciprocal Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid Relu Not "
           "BitwiseNot Identity IsNaN Softplus Softsign Mish HardSwish")
def unary(d):
    case = d.case(d.tensor(shape=d.shape(zero=True)))
    definition = {"Erf": definitions.erf, "HardSwish": definitions.hard_swish}.get(d.op)
    return case.defined(definition) if definition else case


@operators("IsInf")
def is_inf(d):
    return d.case(d.tensor(), detect_positive=d.maybe(d.pick(2)), detect_negative=d.maybe(d.pick(2)))


@operators("Elu Celu LeakyRelu ThresholdedRelu Selu HardSigmoid Swish")
def with_parameters(d):
    return d.case(d.tensor(), **{name: d.maybe(d.real(0.1, 2)) for name in d.schema.attributes})


@operators("Shrink")
def shrink(d):
    unsigned = d.type().startswith("u")
    x = d.tensor() if is_float(d.type()) else d.plain().tensor()   # what leaves an integer's range has no defined result
    case = d.case(x, lambd=d.maybe(d.real(0.1, 2)), bias=d.maybe(d.real(0 if unsigned else -2, 0.5 if unsigned else 2)))
    if not is_float(d.type()):
        case.definition = lambda: definitions.shrink(x, **case.attributes)
    return case


@operators("Gelu")
def gelu(d):
    return d.case(d.tensor(), approximate=d.maybe(d.among(["none", "tanh"])))


@operators("PRelu")
def prelu(d):
    x = d.shape(1, 4)
    rank = d.between(0, len(x))
    return d.case(d.tensor(0, x), d.tensor(1, [1 if d.chance(0.3) else e for e in x[len(x) - rank:]]))


@operators("SwiGLU")
def swiglu(d):
    a, b = [d.shape()] * 2
    return d.case(d.tensor(0, a), d.tensor(1, b), alpha=d.maybe(d.real(0.5, 2)))


@operators("Add Sub Mul Equal Less Greater LessOrEqual GreaterOrEqual And Or Xor BitwiseAnd BitwiseOr BitwiseXor")
def binary(d):
    a, b = d.broadcast(2, zero=True)
    return d.case(d.tensor(0, a, whole=d.chance(0.5)), d.tensor(1, b, whole=True))


def divisor(d, shape, name):
    """No integer is divided by 0, nor the least one by -1: both have no defined result."""
    value = d.values(name, shape)
    if is_float(name):
        return value
    wide = value.astype(np.int64) if name != "uint64" else value
    return np.where((wide == 0) | (wide == -1), 3, value).astype(value.dtype)


@operators("Div Mod")
def division(d):
    a, b = d.broadcast(2)
    name = d.type()
    fmod = None if d.op == "Div" else 1 if is_float(name) or d.chance(0.5) else d.maybe(0)
    return d.case(d.tensor(0, a), divisor(d, b, name), fmod=fmod)


@operators("Pow")
def power(d):
    a, b = d.broadcast(2)
    base, exponent = d.type(0), d.type(1)
    if is_float(base):
        right = d.values(exponent, b, whole=d.chance(0.6)) if is_float(exponent) else d.values(exponent, b, low=-3, special=False)
        return d.case(d.tensor(0, a), right)
    return d.plain().case(d.tensor(0, a, low=-5, high=5), d.values(exponent, b, low=0, high=4, whole=True))


@operators("BitShift")
def bit_shift(d):
    a, b = d.broadcast(2)
    name = d.type()
    bits = numpy_type(name).itemsize * 8
    return d.case(d.tensor(0, a, low=0, high=100), d.values(name, b, low=0, high=bits - 1, special=False), direction=d.among(["LEFT", "RIGHT"]))


@operators("Max Min")
def extreme(d):
    case = d.case(*[d.tensor(0, shape, whole=d.chance(0.5)) for shape in d.broadcast(d.between(1, 4))])
    return case.defined(lambda *operands: extremes.of_operands(d.op, operands))


@operators("Sum Mean")
def variadic(d):
    return d.case(*[d.tensor(0, shape, whole=d.chance(0.5), huge=False) for shape in d.broadcast(d.between(1, 4))])


@operators("Clip")
def clip(d):
    x, name = d.tensor(), d.type()
    low, high = (d.values(name, (), low=l, high=h, special=False) for l, h in ((-3, 1), (-1, 3)))
    if d.version < 11:
        return d.case(x, min=d.maybe(float(low)), max=d.maybe(float(high)))
    kind = Const if d.chance(0.5) else np.asarray
    return d.case(x, d.maybe(kind(low), 0.7), d.maybe(kind(high), 0.7))


@operators("Where")
def where(d):
    c, a, b = d.broadcast(3, zero=True)
    return d.case(d.tensor(0, c), d.tensor(1, a), d.tensor(2, b))


def castable(d, source, target, shape):
    """Values of one type that the other can hold: the rest has no defined result."""
    if source == "string":
        if is_float(target):
            return np.array([d.among(["1", "-2.5", "3e4", "0.125", "NaN", "INF", "-INF"]) for _ in range(int(np.prod(shape)))], object).reshape(shape)
        return np.array([str(d.between(0, 9)) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    if is_float(source) and not is_float(target) and target not in ("bool", "string"):
        low, high = limits(target)
        return d.values(source, shape, low=max(low, -100), high=min(high, 100), special=False)
    return d.values(source, shape)


def cast_target(d):
    return d.among([t for t in d.types(0, output=True) if t not in UNUSED_TYPES])


@operators("Cast CastLike")
def cast(d):
    source, target = d.type(0), cast_target(d)
    extra = {}
    if d.has("saturate") and target.startswith("float8") and not target.endswith("e8m0"):
        extra["saturate"] = d.maybe(d.pick(2))
    if d.has("round_mode") and target == "float8e8m0":
        extra["round_mode"] = d.maybe(d.among(["up", "down", "nearest"]))
    x = castable(d, source, target, d.shape())
    if target == "float8e8m0" and not source == "string":
        x = np.abs(x.astype(np.float64)).clip(0.125, 100).astype(x.dtype)   # it holds neither 0 nor a sign
    if d.op == "Cast":
        return d.case(x, to=TYPES[target], **extra)
    return d.case(x, d.values(target, d.shape(0, 2)), **extra)


@operators("BitCast")
def bit_cast(d):
    def bits(name):
        return {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4e2m1": 4}.get(name, numpy_type(name).itemsize * 8)
    source = d.type(0)
    target = d.among([t for t in d.types(0, output=True) if bits(t) == bits(source) and t != "bool"] if source != "string" else ["string"])
    return d.case(d.tensor(), to=TYPES[target])


@operators("Dropout")
def dropout(d):
    """Without training: the identity."""
    x = d.tensor()
    if d.version < 12:
        return d.case(x, outputs=1 + d.pick(2), ratio=d.maybe(d.real(0, 0.9)))
    return d.case(x, d.maybe(Const(np.asarray(d.real(0, 0.9)).astype(numpy_type(d.type(1))))), d.maybe(Const(np.array(False)), 0.3), outputs=1 + d.pick(2))
