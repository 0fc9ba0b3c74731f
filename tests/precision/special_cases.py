"""Operators with special values, and what they give by docs/reference/special-values.md. Used by special_values.py."""
import math

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

# name -> (numpy's type, onnx's type, relative error of functions)
TYPES = {"f32": (np.float32, TensorProto.FLOAT, 4e-6), "f64": (np.float64, TensorProto.DOUBLE, 1e-11),
         "f16": (np.float16, TensorProto.FLOAT16, 2e-3), "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 2e-2)}
TAIL = [-1, 1, .5, np.nan, 300.7]   # what stands behind the last whole vector
ERF = np.vectorize(math.erf, otypes=[np.float64])


def specials(dtype):
    least, most = ml_dtypes.finfo(dtype).smallest_subnormal, ml_dtypes.finfo(dtype).max
    return np.array([np.nan, np.inf, -np.inf, 0, -0.0, float(least), -float(least), 3 * float(least), float(most), -float(most),
                     1, -1, .5, -.5, 1.5, 2.5, 3, -4, 300.7, -300.7], np.float64).astype(dtype)


def inputs_of(dtype, few=False):
    """a and b: all pairs; rows of two lengths, images of few and of many channels. few: of half of the values."""
    values = specials(dtype)[::2] if few else specials(dtype)
    random = np.random.default_rng(1)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    tail = np.array(TAIL, np.float64).astype(dtype)

    def drawn(*shape):   # mostly plain numbers, so that some rows have no NaN and some no infinity
        plain = random.choice(np.array([-2, -.75, .25, 1, 1, 2.5, -0.0], np.float64), shape).astype(dtype)
        near = values[~(np.abs(values.astype(np.float64)) > 1e30) | np.isinf(values.astype(np.float64))]   # no sum of these overflows
        special = near[random.integers(0, len(near), shape)]
        return np.where(random.random(shape) < random.random((shape[0],) + (1,) * (len(shape) - 1)) * .3, special, plain)

    rows = drawn(40, 37)
    rows[0], rows[1], rows[2], rows[3, 5] = -np.inf, np.nan, np.inf, np.nan
    few = drawn(40, 3)
    few[:len(ROWS_OF_THREE)] = np.array(ROWS_OF_THREE, np.float64).astype(dtype)
    return {"a": np.concatenate([a, tail[::-1]]), "b": np.concatenate([b, tail]), "rows": rows, "few": few,
            "image": drawn(2, 3, 9, 11), "deep": drawn(1, 32, 8, 8)}


ROWS_OF_THREE = [[5, np.nan, 1], [np.nan, 5, 1], [5, 1, np.nan], [np.nan, np.nan, np.nan], [-np.inf] * 3, [np.inf] * 3, [np.nan, -np.inf, -np.inf],
                 [-np.inf, np.nan, np.inf], [0, -0.0, 0], [2, 2, 1], [-np.inf, -np.inf, 3]]


class Case:
    """One operator: its nodes, and what it gives."""

    def __init__(self, name, op, inputs, expected, exact=True, proto=None, types=tuple(TYPES), outputs=1, wanted=0, **attributes):
        self.name, self.op, self.inputs, self.formula, self.exact = name, op, inputs, expected, exact
        self.proto, self.types, self.outputs, self.wanted, self.attributes = proto, types, outputs, wanted, attributes

    def nodes(self, proto, dtype):
        """(nodes, constants). An input is a name, a case whose result it is, or an array."""
        nodes, constants, names = [], [], []
        for i, given in enumerate(self.inputs):
            if isinstance(given, Case):
                inner = Case(f"{self.name}_{i}", given.op, given.inputs, None, **given.attributes)
                made, more = inner.nodes(proto, dtype)
                nodes, constants = nodes + made, constants + more
                names.append(inner.name)
            elif isinstance(given, str):
                names.append(given)
            else:
                value = np.asarray(given)
                constants.append(numpy_helper.from_array(value.astype(dtype) if value.dtype == np.float64 else value, f"{self.name}_in{i}"))
                names.append(constants[-1].name)
        outputs = [self.name if i == self.wanted else f"{self.name}_out{i}" for i in range(self.outputs)]
        nodes.append(helper.make_node(self.op, names, outputs, **self.attributes))
        return nodes, constants

    def fits_f32(self):
        """Whether an f32 holds the result, whose size is known."""
        wide_results = ("NonZero", "Cast_INT32", "Cast_INT64", "Cast_UINT32", "Cast_UINT64", "Cast_f64")
        return self.name not in wide_results and not self.name.endswith("_deep") and self.inputs[0] != "deep"

    def expected(self, inputs):
        with np.errstate(all="ignore"):
            result = self.formula(inputs)
        dtype = inputs["a"].dtype
        with np.errstate(all="ignore"):
            return np.asarray(result) if self.proto else np.asarray(result).astype(dtype)


def wide(x):
    return np.asarray(x).astype(np.float64)


def unary(name, formula, exact=False, op=None, **attributes):
    return Case(name, op or name, ["a"], lambda g: formula(wide(g["a"])), exact, **attributes)


def binary(name, formula, exact=True, proto=None, op=None, **attributes):
    return Case(name, op or name, ["a", "b"], lambda g: formula(wide(g["a"]), wide(g["b"])), exact, proto, **attributes)


def over(name, op, source, formula, exact=True, **more):
    return Case(name, op, [source, *more.pop("inputs", [])], lambda g: formula(wide(g[source])), exact, **more)


def to_integer(x, bits, signed):
    """The low bits of the nearest number that 32 bits hold, for u32 and 64 bits that 64 hold; NaN is 0."""
    through = 32 if bits < 32 or (bits == 32 and signed) else 64
    out = []
    for v in wide(x).ravel():
        n = 0 if np.isnan(v) else (1 if v > 0 else -1) << 70 if np.isinf(v) else int(v)
        high = (1 << 64) - 1 if bits == 64 and not signed and n > 0 else (1 << (through - 1)) - 1
        n = min(max(n, -1 << (through - 1)), high) & ((1 << bits) - 1)
        out.append(n - (1 << bits) if signed and n >> (bits - 1) else n)
    return np.array(out, f"{'i' if signed else 'u'}{bits // 8}").reshape(np.shape(x))


def quantized(x, zero, low, high):
    """round(x / 0.5) + zero, saturated; NaN is 0."""
    q = np.rint(x / .5) + zero
    return np.where(np.isnan(q), 0, np.clip(q, low, high))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    d = x - x.max(axis, keepdims=True)
    return d - np.log(np.exp(d).sum(axis, keepdims=True))


def log_sum_exp(x, axis):
    top = x.max(axis, keepdims=True)
    shift = np.where(np.isinf(top), 0, top)
    return np.log(np.exp(x - shift).sum(axis, keepdims=True)) + shift


def first(x, axis, sign, last=False):
    """The place of the first (last) NaN, else of the first (last) largest of sign * x."""
    best = []
    for line in np.moveaxis(sign * x, axis, 1):
        places = np.flatnonzero(np.isnan(line) if np.isnan(line).any() else line == line.max())
        best.append(places[-1 if last else 0])
    return np.array(best, np.int64)


def top_k(x, k, largest):
    """Places; a NaN is the largest, equal ones in their order."""
    places = []
    for row in x:
        key = [(1, 0.0) if np.isnan(v) else (0, v + 0.0) for v in row]
        places.append(sorted(range(len(row)), key=lambda i: ((-key[i][0], -key[i][1]) if largest else key[i]) + (i,))[:k])
    return np.array(places, np.int64)


def pooled(x, kernel, stride, pad):
    n, c, h, w = x.shape
    padded = np.full((n, c, h + 2 * pad, w + 2 * pad), -np.inf)
    padded[:, :, pad:pad + h, pad:pad + w] = x
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    return windows.max((-1, -2))


def averaged(x, kernel):
    return np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))[:, :, ::kernel, ::kernel].mean((-1, -2))


def at_run(source, place):
    """An element as a scalar that the run makes."""
    return Case("", "Squeeze", [Case("", "Slice", [source, np.array([place]), np.array([place + 1])], None)], None)


def elementwise():
    e = [unary("Relu", lambda x: np.maximum(0, x), True), unary("Abs", np.abs, True), unary("Neg", np.negative, True), unary("Sign", np.sign, True),
         unary("Floor", np.floor, True), unary("Ceil", np.ceil, True), unary("Round", np.rint, True),
         unary("LeakyRelu", lambda x: np.where(x < 0, .25 * x, x), alpha=.25), unary("ThresholdedRelu", lambda x: np.where(x > .75, x, 0), True, alpha=.75),
         unary("HardSigmoid", lambda x: np.minimum(1, np.maximum(0, .25 * x + .5)), alpha=.25, beta=.5),
         unary("HardSwish", lambda x: x * np.minimum(1, np.maximum(0, x / 6 + .5))),
         unary("Elu", lambda x: np.where(x < 0, np.expm1(x), x)), unary("Celu", lambda x: np.maximum(0, x) + np.minimum(0, np.expm1(x)), types=("f32",)),
         unary("Selu", lambda x: float(np.float32(1.05070102)) * np.where(x < 0, float(np.float32(1.67326319)) * np.expm1(x), x)),
         unary("Softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))), unary("Softsign", lambda x: x / (1 + np.abs(x))),
         unary("Shrink", lambda x: np.where(x < -1, x + .5, np.where(x > 1, x - .5, 0)), lambd=1.0, bias=.5),
         unary("Gelu", lambda x: x * .5 * (1 + ERF(x / np.sqrt(2)))), unary("Mish", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
         unary("Sigmoid", lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))),
         unary("Tanh", np.tanh), unary("Erf", ERF), unary("Exp", np.exp), unary("Log", np.log), unary("Sqrt", np.sqrt), unary("Reciprocal", lambda x: 1 / x),
         unary("Asin", np.arcsin), unary("Acos", np.arccos),
         unary("Atan", np.arctan), unary("Sinh", np.sinh), unary("Cosh", np.cosh), unary("Asinh", np.arcsinh), unary("Acosh", np.arccosh), unary("Atanh", np.arctanh),
         unary("IsNaN", np.isnan, True, proto=TensorProto.BOOL), unary("IsInf", np.isinf, True, proto=TensorProto.BOOL),
         unary("IsInfNegative", lambda x: x == -np.inf, True, op="IsInf", proto=TensorProto.BOOL, detect_positive=0)]
    e += [binary("Max", np.maximum), binary("Min", np.minimum), binary("Add", np.add, False), binary("Sub", np.subtract, False), binary("Mul", np.multiply, False),
          binary("Div", np.divide, False), binary("Pow", power, False), binary("Mod", np.fmod, True, fmod=1),
          binary("PRelu", lambda x, y: np.where(x < 0, x * y, x), False)]
    e += [binary(op, formula, True, TensorProto.BOOL) for op, formula in
          [("Less", np.less), ("LessOrEqual", np.less_equal), ("Greater", np.greater), ("GreaterOrEqual", np.greater_equal), ("Equal", np.equal)]]
    e.append(Case("NotEqual", "Not", [Case("", "Equal", ["a", "b"], None)], lambda g: g["a"] != g["b"], proto=TensorProto.BOOL))
    e.append(Case("Where", "Where", [Case("", "Less", ["a", "b"], None), "a", "b"], lambda g: np.where(wide(g["a"]) < wide(g["b"]), g["a"], g["b"])))
    e += [Case("Max3", "Max", ["a", "b", [.75]], lambda g: np.maximum(np.maximum(wide(g["a"]), wide(g["b"])), .75)),
          Case("MinConstant", "Min", ["a", [.75]], lambda g: np.minimum(wide(g["a"]), .75)),
          Case("MaxNaN", "Max", ["a", [np.nan]], lambda g: np.full_like(wide(g["a"]), np.nan)),
          Case("Clip", "Clip", ["a", np.float64(-1), np.float64(1)], lambda g: np.clip(wide(g["a"]), -1, 1)),
          Case("ClipAtRun", "Clip", ["a", at_run("b", -5), at_run("b", -4)], lambda g: np.clip(wide(g["a"]), -1, 1)),
          Case("ClipByNaN", "Clip", ["a", at_run("b", -2), at_run("b", -4)], lambda g: np.full_like(wide(g["a"]), np.nan))]
    for t, small in (("f32", 1e-30), ("f64", 1e-306)):   # far numbers are beyond what is brought to the first quadrant
        for op, f in (("Sin", np.sin), ("Cos", np.cos), ("Tan", np.tan)):
            e.append(Case(f"{op}_{t}", op, [Case("", "Mul", ["a", [small]], None)], lambda g, s=small, f=f: f(wide(g["a"] * g["a"].dtype.type(s))), False, types=(t,)))
    for p in (-1, 0, .5, 1, 2, 3, -.5):
        e.append(Case(f"Pow_{p}".replace("-", "m").replace(".", "_"), "Pow", ["a", np.float64(p)], lambda g, p=p: power(wide(g["a"]), p), False))
    return e


def power(x, y):
    return np.power(x, np.broadcast_to(y, np.shape(x)).copy())   # of one exponent of 0.5 numpy makes a root, which -inf has not


INTEGERS = {"INT8": (8, True), "INT16": (16, True), "INT32": (32, True), "INT64": (64, True), "UINT8": (8, False), "UINT16": (16, False), "UINT32": (32, False),
            "UINT64": (64, False)}


def casts():
    e = [Case(f"Cast_{to}", "Cast", ["a"], lambda g, t=t: to_integer(g["a"], *t), proto=getattr(TensorProto, to), to=getattr(TensorProto, to))
         for to, t in INTEGERS.items()]
    e.append(Case("Cast_BOOL", "Cast", ["a"], lambda g: wide(g["a"]) != 0, proto=TensorProto.BOOL, to=TensorProto.BOOL))
    for name, (dtype, proto, _) in TYPES.items():
        e.append(Case(f"Cast_{name}", "Cast", ["a"], lambda g, d=dtype: narrowed(g["a"], d), proto=proto, to=proto, types=tuple(t for t in TYPES if t != name)))
    e += [Case("Quantize_u8", "QuantizeLinear", ["a", np.float64(.5), np.uint8(10)], lambda g: quantized(wide(g["a"]), 10, 0, 255).astype(np.uint8), proto=TensorProto.UINT8,
               types=("f32",)),
          Case("Quantize_i8", "QuantizeLinear", ["a", np.float64(.5), np.int8(-3)], lambda g: quantized(wide(g["a"]), -3, -128, 127).astype(np.int8), proto=TensorProto.INT8,
               types=("f32",)),
          Case("Quantize_relu", "QuantizeLinear", [Case("", "Relu", ["a"], None), np.float64(.5), np.int8(-128)],
               lambda g: quantized(np.maximum(wide(g["a"]), 0), -128, -128, 127).astype(np.int8), proto=TensorProto.INT8, types=("f32",))]
    return e


def narrowed(x, dtype):
    """Through f32, as every cast to 16 bits."""
    return x.astype(dtype) if dtype == np.float64 else x.astype(np.float32).astype(dtype)


def reductions():
    e = []
    for source in ("rows", "few"):
        for axis in (0, 1):
            def named(op):
                return f"{op}_{source}_{axis}"
            axes = {"inputs": [np.array([axis])]}
            e += [over(named("ReduceMax"), "ReduceMax", source, lambda x, i=axis: x.max(i, keepdims=True), **axes),
                  over(named("ReduceMin"), "ReduceMin", source, lambda x, i=axis: x.min(i, keepdims=True), inputs=[np.array([axis])]),
                  over(named("ReduceSum"), "ReduceSum", source, lambda x, i=axis: x.sum(i, keepdims=True), False, inputs=[np.array([axis])], types=("f32", "f64")),
                  over(named("ReduceLogSumExp"), "ReduceLogSumExp", source, lambda x, i=axis: log_sum_exp(x, i), False, inputs=[np.array([axis])], types=("f32", "f64")),
                  over(named("Softmax"), "Softmax", source, lambda x, i=axis: softmax(x, i), False, axis=axis),
                  over(named("LogSoftmax"), "LogSoftmax", source, lambda x, i=axis: log_softmax(x, i), False, axis=axis)]
            for last in (0, 1):
                for op, sign in (("ArgMax", 1), ("ArgMin", -1)):
                    e.append(over(named(op) + ("_last" if last else ""), op, source, lambda x, i=axis, s=sign, z=last: first(x, i, s, z), proto=TensorProto.INT64, axis=axis,
                                  keepdims=0, select_last_index=last))
        for largest in (0, 1):
            e += [over(f"TopK_{source}_{largest}", "TopK", source, lambda x, b=largest: np.take_along_axis(x, top_k(x, 2, b), 1), inputs=[np.array([2])], outputs=2,
                       largest=largest),
                  over(f"TopKPlaces_{source}_{largest}", "TopK", source, lambda x, b=largest: top_k(x, 2, b), inputs=[np.array([2])], outputs=2, wanted=1,
                       proto=TensorProto.INT64, largest=largest)]
        e.append(over(f"Hardmax_{source}", "Hardmax", source, lambda x: np.arange(x.shape[1]) == first(x, 1, 1)[:, None]))
    e.append(over("NonZero", "NonZero", "few", lambda x: np.array(np.nonzero(x)), proto=TensorProto.INT64))
    e.append(over("ReduceMax_all", "ReduceMax", "rows", lambda x: x.max(), keepdims=0))
    e.append(over("CumSum", "CumSum", "few", lambda x: np.cumsum(x, 1), False, inputs=[np.array(1)], types=("f32", "f64")))
    e.append(Case("ScatterMax", "ScatterElements", ["few", np.zeros((40, 3), np.int64), "few"],
                  lambda g: np.concatenate([wide(g["few"]).max(1, keepdims=True), wide(g["few"])[:, 1:]], 1), axis=1, reduction="max"))
    return e


def images():
    e = []
    for source, channels in (("image", 3), ("deep", 32)):
        e += [over(f"MaxPool2_{source}", "MaxPool", source, lambda x: pooled(x, 2, 2, 0), kernel_shape=[2, 2], strides=[2, 2]),
              over(f"MaxPool3_{source}", "MaxPool", source, lambda x: pooled(x, 3, 2, 1), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
              over(f"MaxPool3s1_{source}", "MaxPool", source, lambda x: pooled(x, 3, 1, 1), kernel_shape=[3, 3], pads=[1] * 4),
              over(f"GlobalMaxPool_{source}", "GlobalMaxPool", source, lambda x: x.max((2, 3), keepdims=True)),
              over(f"ReduceMax_{source}", "ReduceMax", source, lambda x: x.max(1, keepdims=True), inputs=[np.array([1])])]
        ones = np.ones((channels, 1, 1, 1))
        conv = Case("", "Conv", [source, ones], None, group=channels)
        relu = Case("", "Relu", [conv], None)
        e += [Case(f"ConvRelu_{source}", "Relu", [conv], lambda g, s=source: np.maximum(wide(g[s]), 0), types=("f32", "f64")),
              Case(f"ConvReluPool_{source}", "MaxPool", [relu], lambda g, s=source: pooled(np.maximum(wide(g[s]), 0), 2, 2, 0), kernel_shape=[2, 2], strides=[2, 2],
                   types=("f32", "f64")),
              Case(f"ConvPool_{source}", "MaxPool", [conv], lambda g, s=source: pooled(wide(g[s]), 2, 2, 0), kernel_shape=[2, 2], strides=[2, 2], types=("f32", "f64"))]
    e.append(over("AveragePool", "AveragePool", "deep", lambda x: averaged(x, 2), False, kernel_shape=[2, 2], strides=[2, 2], types=("f32", "f64")))
    e.append(over("ResizeNearest", "Resize", "image", lambda x: x.repeat(2, 2).repeat(2, 3), inputs=["", np.array([1, 1, 2, 2], np.float32)], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
    return e


def cases(type_name):
    return [case for case in [*elementwise(), *casts(), *reductions(), *images()] if type_name in case.types]
