"""Operators that take each element alone, or a row of them."""
import numpy as np

from graph import BF16, BOOL, F16, F32, F64, FLOATS, I32, I64, INTEGERS, broadcast, onnx_type

UNARY = ["Abs", "Neg", "Tanh", "Sigmoid", "Relu", "Erf", "Sin", "Cos", "Atan", "Softsign", "Softplus", "Elu", "Selu", "HardSigmoid", "HardSwish",
         "LeakyRelu", "Mish", "Gelu", "Floor", "Ceil", "Round", "Sign", "Identity", "ThresholdedRelu", "Celu"]
SMOOTH = ["Tanh", "Sigmoid", "Relu", "Erf", "Atan", "Softplus", "Abs", "Neg"]
ROUNDING = {"Floor", "Ceil", "Round", "Sign", "ThresholdedRelu"}   # of what is only nearly the same they make something else: on exact values alone
OF_SMALL = ["Exp", "Sinh", "Cosh", "Tan", "Asin", "Acos", "Atanh", "Asinh"]   # of what lies within a half
OF_ONES = ["Log", "Sqrt", "Reciprocal"]                                       # of what lies between 1/2 and 3/2
WIDE = (F32, F64, F16, BF16)


def unary(g):
    x, op = g.one(FLOATS), g.among(UNARY)
    if x and (op not in ROUNDING or x.exact):
        g.add(op, [x.name], [(x.dtype, x.shape)], exact=op == "Identity" and x.exact)


def small(g):
    """Within a half, so that what follows is well conditioned."""
    x = g.one(FLOATS)
    if not x:
        return None
    y = g.add("Tanh", [x.name], [(x.dtype, x.shape)])
    half = g.weight(np.asarray(0.5, F32 if x.dtype == BF16 else x.dtype), x.dtype)
    return g.add("Mul", [y.name, half], [(x.dtype, x.shape)])


def of_small(g):
    x = small(g)
    if x:
        g.add(g.among(OF_SMALL), [x.name], [(x.dtype, x.shape)])


def of_ones(g):
    x = small(g)
    if not x:
        return
    one = g.weight(np.asarray(1, F32 if x.dtype == BF16 else x.dtype), x.dtype)
    y = g.add("Add", [x.name, one], [(x.dtype, x.shape)])
    last = g.pick(3)
    if last == 0:
        g.add("Pow", [y.name, g.numbers(dtype=x.dtype)], [(x.dtype, x.shape)])
    elif last == 1:
        g.add("Div", [x.name, y.name], [(x.dtype, x.shape)])
    else:
        g.add(g.among(OF_ONES), [y.name], [(x.dtype, x.shape)])


def operand(g, x):
    """A second operand of x's type: a value that fits, or a constant."""
    fitting = [v for v in g.values if v.dtype == x.dtype and broadcast(v.shape, x.shape) is not None]
    if g.pick(2):
        v = g.among(fitting)
        return v.name, broadcast(v.shape, x.shape), v.exact
    shape = tuple(1 if g.pick(2) else d for d in x.shape)[g.pick(len(x.shape) + 1):]
    return g.numbers(*shape, dtype=x.dtype), broadcast(shape, x.shape), True


def binary(g):
    x = g.one(FLOATS + INTEGERS)
    if not x:
        return
    other, shape, exact = operand(g, x)
    op = g.among(["Add", "Sub", "Mul", "Max", "Min"])
    if op == "Sub" and other == x.name:   # 0, but for rounding
        return
    g.add(op, [x.name, other][::1 if g.pick(2) else -1], [(x.dtype, shape)],
          exact=x.exact and exact and (x.dtype in INTEGERS or op in ("Max", "Min")))


def variadic(g):
    x = g.one((F32, F64))
    if not x:
        return
    pairs = [operand(g, x) for _ in range(1 + g.pick(3))]
    shape = x.shape
    for _, s, _ in pairs:
        shape = broadcast(shape, s)
        if shape is None:
            return
    g.add(g.among(["Sum", "Mean", "Max", "Min"]), [x.name, *(name for name, _, _ in pairs)], [(x.dtype, shape)])


def integer_division(g):
    x = g.one((I32, I64))
    if x:
        divisor = g.weight(np.asarray(1 + g.pick(3), x.dtype))
        op = g.among(["Div", "Mod"])
        g.add(op, [x.name, divisor], [(x.dtype, x.shape)], exact=True)


def bits(g):
    x = g.one(INTEGERS)
    if not x:
        return
    op = g.among(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
    if op == "BitwiseNot":
        g.add(op, [x.name], [(x.dtype, x.shape)], exact=True)
    else:
        other, shape, _ = operand(g, x)
        g.add(op, [x.name, other], [(x.dtype, shape)], exact=True)


def compare(g):
    x = g.one(FLOATS + INTEGERS, exact=True)
    if x:
        g.add(g.among(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]), [x.name, g.weight(zero(x.dtype), x.dtype)],
              [(BOOL, x.shape)], exact=True)


def zero(dtype):
    return np.zeros((), F32 if dtype == BF16 else dtype)


def logic(g):
    x = g.one((BOOL,))
    if not x:
        return
    other = g.among([v for v in g.values if v.dtype == BOOL and broadcast(v.shape, x.shape) is not None])
    op = g.among(["And", "Or", "Xor", "Not"])
    if op == "Not":
        g.add(op, [x.name], [(BOOL, x.shape)], exact=True)
    else:
        g.add(op, [x.name, other.name], [(BOOL, broadcast(x.shape, other.shape))], exact=True)


def where(g):
    c, x = g.one((BOOL,)), g.one(FLOATS + INTEGERS)
    shape = broadcast(c.shape, x.shape) if c and x else None
    if shape is not None:
        g.add("Where", [c.name, x.name, g.numbers(dtype=x.dtype)], [(x.dtype, shape)], exact=x.exact)


def cast(g):
    """To wider types of what is not exact: a smaller one would round what is only nearly the same."""
    x = g.one()
    if not x:
        return
    types = [F32, I64, F32, g.rare or I32] if x.exact else [F32, F64]
    to = g.among(types)
    if x.dtype in FLOATS and to not in FLOATS and not x.exact:
        return
    if x.dtype in FLOATS and to not in FLOATS and (to.kind == "u" or x.dtype == BF16):   # what is negative is undefined
        return
    g.add("Cast", [x.name], [(to, x.shape)], exact=x.exact, to=onnx_type(to))


def clip(g):
    x = g.one((F32, F64, I32, I64))
    if x:
        least, most = sorted(g.draw(x.dtype, [2], least=1).tolist())
        g.add("Clip", [x.name, g.weight(np.asarray(least, x.dtype)), g.weight(np.asarray(most, x.dtype))], [(x.dtype, x.shape)], exact=x.exact)


def prelu(g):
    x = g.one((F32, F64), 1)
    if x:
        g.add("PRelu", [x.name, g.numbers(x.shape[-1], dtype=x.dtype)], [(x.dtype, x.shape)])


def softmax(g):
    x = g.one(FLOATS, 1)
    if not x:
        return
    op, axis = g.among(["Softmax", "LogSoftmax"]), g.pick(2 * len(x.shape)) - len(x.shape)
    if op == "Softmax" or x.shape[axis] > 1:   # the logarithm of one element's is 0 but for rounding
        g.add(op, [x.name], [(x.dtype, x.shape)], axis=axis)


def norm(g):
    x = g.one((F32, F64), 1)
    if x and x.shape[-1] > 1:
        width = x.shape[-1]
        g.add("LayerNormalization", [x.name, g.numbers(width, dtype=x.dtype), g.numbers(width, dtype=x.dtype)], [(x.dtype, x.shape)],
              axis=-1, epsilon=1e-2)


FAMILIES = [unary, unary, of_small, of_ones, binary, binary, variadic, integer_division, bits, compare, logic, where, cast, clip, prelu,
            softmax, norm]


def activation(g):
    x = g.one((F32,))
    if x:
        op = g.among(["Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Tanh", "HardSigmoid", "Clip6", "Gelu"])
        more = [g.weight(np.float32(0)), g.weight(np.float32(6))] if op == "Clip6" else []
        g.add(op.rstrip("6"), [x.name, *more], [(F32, x.shape)])


NETWORK = [unary, activation, activation, binary, binary, clip, softmax, norm]
