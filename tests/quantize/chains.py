"""Chains of quantized operators, as QDQ and as integer operators: nodes of ONNX, and what they compute exactly.

Each operator is a function of a Case and the tensor before it. It returns a Step: the exact result, and how to write the nodes."""
import dataclasses

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import exact_integers as exact
from exact_integers import ULP, Ints, Quantization, Reals

MS = "com.microsoft"
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
TIE = 1e-4         # a part of a step: kernels of onnxruntime add the zero point before they round
TABLE = 64 * ULP   # how far functions in floats are off, of their result
LARGEST = 700      # elements of a value


@dataclasses.dataclass
class Tensor:
    """A quantized tensor of the graph. strict: what we may make of it; loose: what onnxruntime may, which computes in other orders."""
    name: str
    strict: Ints
    loose: Ints
    scale: str = ""   # the names of the parameters
    zero: str = ""

    @property
    def by(self):
        return self.strict.by

    @property
    def shape(self):
        return self.strict.low.shape

    def triple(self):
        return [self.name, self.scale, self.zero]


@dataclasses.dataclass
class Step:
    exact: object             # (Ints, loose) -> Reals
    floats: object            # names of floats -> the name of the result
    others: list = dataclasses.field(default_factory=list)   # tensors beside the one before
    integers: object = None   # (Quantization, names of its parameters) -> the name of the result; None: QDQ in either form
    loose_steps: float = 0.0  # onnxruntime's integer operator may be off so much
    keeps: bool = False       # the result may have the operand's scale
    moves: bool = False       # `floats` takes integers as well
    relu: bool = False        # a Relu or Clip may stand behind it, before it is quantized


class Case:
    """One chain, with names of its own. form: "qdq" or "qlinear"."""

    def __init__(self, index, seed):
        self.rng = np.random.default_rng([seed, index])
        self.index, self.count = index, 0
        self.nodes, self.values, self.weights, self.feeds = [], [], [], {}
        self.words = []

    # --- Parts of a graph.

    def name(self, stem):
        self.count += 1
        return f"c{self.index}_{stem}{self.count}"

    def constant(self, array, stem="k"):
        name = self.name(stem)
        self.weights.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def node(self, op, inputs, domain="", **attributes):
        out = self.name(op.lower()[:8])
        self.nodes.append(helper.make_node(op, inputs, [out], out, domain=domain, **attributes))
        return out

    def dequantized(self, tensor):
        return self.node("DequantizeLinear", tensor.triple())

    # --- Draws.

    def one_of(self, *options):
        return options[self.rng.integers(len(options))]

    def chance(self, share):
        return self.rng.random() < share

    def scale(self, wanted):
        """Near the wanted one; a power of two in dyadic cases, whose results lie on ties."""
        wanted = max(float(wanted), 2.0 ** -20)
        if self.dyadic:
            return np.float32(2.0 ** np.round(np.log2(wanted)))
        return np.float32(wanted * self.rng.uniform(0.8, 1.2))

    def type(self):
        """The chain's own; QDQ graphs may mix them."""
        return self.one_of(np.uint8, np.int8) if self.form == "qdq" and self.chance(0.2) else self.own_type

    def quantization(self, low, high):
        """For values between low and high."""
        low, high = min(low, 0.0), max(high, 0.0)
        t = self.type()
        least, most = np.iinfo(t).min, np.iinfo(t).max
        if self.symmetric:
            middle = 0 if t is np.int8 else least if low == 0 else 128
            return Quantization(self.scale(max(-low, high) / (most - middle)), middle, t)
        scale = self.scale((high - low) / 255)
        zero = int(np.clip(np.round(least - low / scale) + self.rng.integers(-1, 2), least, most))
        return Quantization(scale, zero, t)

    def parameters(self, by):
        return self.constant(by.scale, "s"), self.constant(np.asarray(by.zero, by.type), "z")

    def operand(self, shape, by=None, given=True):
        """An input of the graph, or a constant."""
        if not by:
            t = self.type()
            least, most = np.iinfo(t).min, np.iinfo(t).max
            middle = self.one_of(0, 128) if t is np.uint8 else 0
            by = Quantization(self.scale(0.03), middle if self.symmetric else int(self.rng.integers(least, most + 1)), t)
        data = self.rng.integers(by.limits[0], by.limits[1] + 1, shape).astype(by.type)
        if given:
            name = self.name("x")
            self.values.append(helper.make_tensor_value_info(name, TYPES[by.type], shape))
            self.feeds[name] = data
        else:
            name = self.constant(data, "w")
        ints = Ints(data.astype(np.int64), data.astype(np.int64), by)
        return Tensor(name, ints, ints, *self.parameters(by))

    # --- A chain.

    def apply(self, kind, x):
        step = OPERATORS[kind](self, x)
        strict, loose = step.exact(x.strict, False), step.exact(x.loose, True)
        behind = self.behind() if step.relu and self.chance(0.35) else None
        if behind:
            strict, loose = behind.bounds(strict), behind.bounds(loose)
            self.words.append(behind.word)
        if step.keeps and self.chance(0.6):
            by, scale, zero = x.by, x.scale, x.zero
        else:
            by = self.quantization(float(strict.low.min()), float(strict.high.max()))
            scale, zero = self.parameters(by)
        if self.form == "qlinear" and not behind:
            name = None
            if step.moves and by is x.by:
                name = step.floats(x.name)
            elif step.integers:
                name = step.integers((by, scale, zero))
            if name:
                loose.error = np.maximum(loose.error, step.loose_steps * np.float64(by.scale))
                return Tensor(name, exact.quantized(strict, by), exact.quantized(loose, by), scale, zero)
        y = step.floats(*[self.dequantized(t) for t in (x, *step.others)])
        if behind:
            y = behind.node(y)
        name = self.node("QuantizeLinear", [y, scale, zero])
        return Tensor(name, exact.quantized(strict, by), exact.quantized(loose, by), scale, zero)

    def behind(self):
        """A Relu or Clip between an operator and its QuantizeLinear."""
        if self.chance(0.5):
            return Behind("relu", 0.0, np.inf, lambda y: self.node("Relu", [y]))
        low, high = self.one_of((0.0, 6.0), (0.0, 1.0), (-1.0, 1.0))
        return Behind(f"clip({low:g}, {high:g})", low, high,
                      lambda y: self.node("Clip", [y, self.constant(np.float32(low)), self.constant(np.float32(high))]))

    def build(self, kinds, form):
        self.form, self.kinds = form, kinds
        self.own_type = self.one_of(np.uint8, np.int8)
        self.symmetric, self.dyadic = self.chance(0.5), self.chance(0.4)
        shape = (self.one_of(1, 1, 2), self.one_of(3, 4, 8, 16, 17), self.one_of(1, 4, 5, 7, 8), self.one_of(4, 5, 6, 9))
        x = self.operand(shape)
        for kind in kinds:
            self.words.append(kind)
            x = self.apply(kind, x)
        self.result = x
        return self

    def text(self):
        traits = [self.form, np.dtype(self.own_type).name, "symmetric" if self.symmetric else "asymmetric"] + ["dyadic"] * self.dyadic
        return f"case {self.index}: {', '.join(self.words)} ({', '.join(traits)})"


@dataclasses.dataclass
class Behind:
    word: str
    low: float
    high: float
    node: object

    def bounds(self, x):
        return Reals(np.clip(x.low, self.low, self.high), np.clip(x.high, self.low, self.high), x.error)


# --- Products.

@dataclasses.dataclass
class Weights:
    integers: np.ndarray      # less their zero point
    scale: np.ndarray         # one, or one a channel
    names: list               # weights, scale, zero point
    axis: int


def weights(c, x, shape, axis):
    t = np.int8 if x.by.type is np.int8 and c.form == "qlinear" else c.one_of(np.int8, np.int8, np.uint8)
    small = c.dyadic and c.chance(0.6)
    least, most = (-3, 4) if small else (-127, 128)
    data = c.rng.integers(least, most, shape)
    count = shape[axis] if c.chance(0.5) else 1
    scales = np.array([c.scale(c.rng.uniform(0.01, 0.04)) for _ in range(count)], np.float32)
    middle = 0 if t is np.int8 else 128
    zeros = np.full(count, middle, np.int64)
    if not c.symmetric and (t is np.uint8 or c.chance(0.3)):
        zeros = np.full(count, middle + c.rng.integers(-9, 10)) if c.form == "qlinear" else middle + c.rng.integers(-9, 10, count)
    along = [1] * len(shape)
    along[axis] = count
    stored = np.clip(data + zeros.reshape(along), np.iinfo(t).min, np.iinfo(t).max)
    data = (stored - zeros.reshape(along)).astype(np.float64)
    one = (lambda a: a) if count > 1 else (lambda a: a.reshape(()))
    names = [c.constant(stored.astype(t), "w"), c.constant(one(scales), "ws"), c.constant(one(zeros.astype(t)), "wz")]
    return Weights(data, scales, names, axis)


def bias_of(c, x, w, count):
    """i32 in units of the sums' scale, or None; as numbers, and as a dequantized value."""
    if c.chance(0.5):
        return None, np.zeros(count)
    most = 40 if np.abs(w.integers).max() < 4 else 3000
    return (data := c.rng.integers(-most, most + 1, count).astype(np.int32)), data.astype(np.float64)


def product(c, x, w, outputs, f, along, floats, integers):
    """floats and integers: of the names of operands and a bias. along: of the result, where its channels are."""
    stored, bias = bias_of(c, x, w, outputs)
    sums = np.float32(x.by.scale) * w.scale   # as onnxruntime's quantizer computes the bias' scale
    exact_scale = np.resize(np.float64(x.by.scale) * w.scale.astype(np.float64), outputs).reshape(along)
    bias_name = None if stored is None else c.constant(stored, "b")

    def in_floats(name):
        real = c.node("DequantizeLinear", w.names, axis=w.axis)
        if bias_name is None:
            return floats(name, real, None)
        scale = c.constant(sums if sums.size > 1 else sums.reshape(()), "bs")
        return floats(name, real, c.node("DequantizeLinear", [bias_name, scale], axis=0))
    return Step(lambda v, loose: exact.product(v, w.integers, f, bias.reshape(along), exact_scale, w.integers.size if loose else 0, c.dyadic),
                in_floats, integers=lambda y: integers(bias_name, y), relu=True)


def convolution(c, x, group, outputs, kernel):
    _, channels, height, width = x.shape
    dilation = c.one_of(1, 1, 1, 2)
    pad = c.one_of(0, kernel // 2)
    if min(height, width) + 2 * pad < (kernel - 1) * dilation + 1:
        pad, dilation = kernel // 2, 1
        kernel = kernel if min(height, width) + 2 * pad >= kernel else 1
    strides = (c.one_of(1, 1, 2),) * 2
    pads = (pad, pad, pad, c.one_of(pad, pad, 0) if width + pad >= (kernel - 1) * dilation + 1 else pad)
    w = weights(c, x, (outputs, channels // group, kernel, kernel), 0)
    more = {"strides": strides, "dilations": (dilation,) * 2, "pads": pads, "group": group, "kernel_shape": (kernel, kernel)}
    return product(c, x, w, outputs, lambda v, k: exact.conv(v, k, strides, (dilation,) * 2, pads, group), (1, -1, 1, 1),
                   lambda name, real, bias: c.node("Conv", [name, real] + ([bias] if bias else []), **more),
                   lambda bias, y: c.node("QLinearConv", [*x.triple(), *w.names, y[1], y[2]] + ([bias] if bias else []), **more))


def conv(c, x):
    channels = x.shape[1]
    group = c.one_of(*[g for g in (1, 1, 2, 4) if channels % g == 0 and g < max(channels, 2)])
    return convolution(c, x, group, group * c.one_of(1, 2, 4, 5, 8, 16) if group < 4 else 8, c.one_of(1, 3, 3))


def depthwise(c, x):
    return convolution(c, x, x.shape[1], x.shape[1] * c.one_of(1, 1, 1, 2), c.one_of(2, 3, 3, 5))


def conv_of_one_axis(c, x):
    """All pixels are a line, between two Reshapes."""
    n, channels, height, width = x.shape
    length, group = height * width, c.one_of(1, 1, channels)
    outputs = channels if group > 1 else c.one_of(1, 4, 8, 13)
    kernel, stride, dilation = c.one_of(1, 3, 3, 5), c.one_of(1, 1, 2), c.one_of(1, 1, 2)
    pad = (kernel - 1) * dilation // 2 if length < (kernel - 1) * dilation + 1 else c.one_of(0, (kernel - 1) * dilation // 2)
    w = weights(c, x, (outputs, channels // group, kernel), 0)
    more = {"strides": (stride,), "dilations": (dilation,), "pads": (pad, pad), "group": group, "kernel_shape": (kernel,)}
    made = (length + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1
    line, back = c.constant(np.array([n, channels, length], np.int64)), c.constant(np.array([n, outputs, made, 1], np.int64))

    def f(v, k):
        y = exact.conv(v.reshape(n, channels, length, 1), k[..., None], (stride, 1), (dilation, 1), (pad, 0, pad, 0), group)
        return y.reshape(n, outputs, made, 1)

    def in_integers(bias, y):
        a = c.node("Reshape", [x.name, line])
        return c.node("Reshape", [c.node("QLinearConv", [a, x.scale, x.zero, *w.names, y[1], y[2]] + ([bias] if bias else []), **more), back])
    step = product(c, x, w, outputs, f, (1, -1, 1, 1),
                   lambda name, real, bias: c.node("Reshape", [c.node("Conv", [c.node("Reshape", [name, line]), real] + ([bias] if bias else []),
                                                                      **more), back]),
                   in_integers)
    step.relu = False
    return step


def transposed(c, x):
    channels = x.shape[1]
    group = c.one_of(*[g for g in (1, 1, 2, channels) if channels % g == 0])
    each = c.one_of(1, 3, 4) if group < channels else 1
    kernel, stride = c.one_of((2, 2), (3, 1), (3, 2), (4, 2), (1, 1))
    pad = 1 if kernel > 2 else 0
    more = (stride - 1,) * 2 if kernel == 3 else (0, 0)
    w = weights(c, x, (channels, each, kernel, kernel), 1)
    if w.scale.size == each and group > 1 and each > 1:   # the output channels of a group have the scales of all groups
        along = np.tile(w.scale, group)
    else:
        along = w.scale
    tiled = dataclasses.replace(w, scale=along)
    strides, pads = (stride, stride), (pad,) * 4
    bias_free = product(c, x, tiled, each * group, lambda v, k: exact.conv_transpose(v, k, strides, (1, 1), pads, group, more), (1, -1, 1, 1),
                        lambda name, real, bias: c.node("ConvTranspose", [name, real] + ([bias] if bias else []), strides=strides, pads=pads,
                                                        group=group, output_padding=more, kernel_shape=(kernel, kernel)),
                        lambda bias, y: None)
    bias_free.integers = None
    return bias_free


def matmul(c, x):
    depth, columns = x.shape[-1], c.one_of(3, 5, 8, 16)
    w = weights(c, x, (depth, columns), 1)
    step = product(c, x, w, columns, lambda v, k: v @ k, (-1,),
                   lambda name, real, bias: c.node("Add", [c.node("MatMul", [name, real]), bias]) if bias else c.node("MatMul", [name, real]),
                   lambda bias, y: None if bias else c.node("QLinearMatMul", [*x.triple(), *w.names, y[1], y[2]]))
    return step


def matmul_of_two(c, x):
    """Both operands are computed."""
    other = c.operand((x.shape[0], x.shape[1], x.shape[3], c.one_of(3, 4, 8)))
    right = other.strict.centered()[0]
    scale = np.float64(x.by.scale) * np.float64(other.by.scale)

    def computed(v, loose):
        return exact.product(v, right, lambda a, b: a @ b, 0.0, scale, right.shape[2] if loose else 0, c.dyadic)
    return Step(computed, lambda a, b: c.node("MatMul", [a, b]), [other],
                lambda y: c.node("QLinearMatMul", [*x.triple(), *other.triple(), y[1], y[2]]), relu=True)


def gemm(c, x):
    rows, depth = x.shape[0], int(np.prod(x.shape[1:]))
    shape = c.one_of((4, 2, 3), (8, 1, 4), (3, 4, 4))
    columns, trans = int(np.prod(shape)), c.chance(0.5)
    w = weights(c, x, (columns, depth) if trans else (depth, columns), 0 if trans else 1)
    flat, back = c.constant(np.array([rows, depth], np.int64)), c.constant(np.array([rows, *shape], np.int64))

    def f(v, k):
        return (v.reshape(rows, depth) @ (k.T if trans else k)).reshape(rows, *shape)

    def in_integers(bias, y):
        a = c.node("Reshape", [x.name, flat])
        made = c.node("QGemm", [a, x.scale, x.zero, *w.names, bias or "", y[1], y[2]], MS, transB=int(trans))
        return c.node("Reshape", [made, back])
    along = (1, *shape)
    step = product(c, x, w, columns, f, along,
                   lambda name, real, bias: c.node("Reshape", [c.node("Gemm", [c.node("Reshape", [name, flat]), real] + ([bias] if bias else []),
                                                                      transB=int(trans)), back]),
                   in_integers)
    step.relu = False
    return step


# --- Pools and means.

def window(c, x):
    height, width = x.shape[2:]
    kernel = (min(height, c.one_of(1, 2, 2, 3)), min(width, c.one_of(2, 2, 3)))
    strides = c.one_of((1, 1), (2, 2), kernel)
    pads = c.one_of((0, 0, 0, 0), (0, 0, 0, 0), tuple(k // 2 for k in kernel) * 2)
    return kernel, strides, pads


def max_pool(c, x):
    kernel, strides, pads = window(c, x)
    more = {"kernel_shape": kernel, "strides": strides, "pads": pads}

    def made(name):
        return c.node("MaxPool", [name], **more)

    def computed(v, loose):
        r = v.reals()
        return Reals(*(exact.pooled_maximum(a, kernel, strides, pads) for a in (r.low, r.high)), float_error(c, r.size().max()))
    return Step(computed, made, keeps=True, moves=True)


def float_error(c, size):
    """The error of a dequantized number that is quantized again."""
    return 0.0 if c.dyadic else 8 * ULP * size


def average_pool(c, x):
    kernel, strides, pads = window(c, x)
    count_pads, ceil = c.chance(0.3), c.chance(0.3)
    ceil = ceil and not count_pads and not any(pads)   # runtimes differ in what such a window counts
    more = {"kernel_shape": kernel, "strides": strides, "pads": pads, "count_include_pad": int(count_pads), "ceil_mode": int(ceil)}
    points = exact.pooled_average(x.strict.reals().low, kernel, strides, pads, count_pads, ceil)[1]
    halves = bool(np.all(np.log2(points) % 1 == 0))

    def computed(v, loose):
        r = v.reals()
        low, high = (exact.pooled_average(a, kernel, strides, pads, count_pads, ceil)[0] for a in (r.low, r.high))
        error = 0.0 if c.dyadic and halves else (32 if loose else 8) * ULP * r.size().max()
        return Reals(low, high, error)
    return Step(computed, lambda name: c.node("AveragePool", [name], **more), [],
                lambda y: c.node("QLinearAveragePool", [*x.triple(), y[1], y[2]], MS, **more), TIE)


def means(c, x, axes, floats, integers, loose_steps=0.0):
    count = int(np.prod([x.shape[a] for a in axes]))

    def computed(v, loose):
        r = v.reals()
        low, high = (a.sum(axes, keepdims=True) / count for a in (r.low, r.high))
        error = 0.0 if c.dyadic and count & (count - 1) == 0 else ((count + 16) if loose else 8) * ULP * r.size().max()
        return Reals(low, high, error)
    return Step(computed, floats, integers=integers, loose_steps=loose_steps)


def global_average(c, x):
    return means(c, x, (2, 3), lambda name: c.node("GlobalAveragePool", [name]),
                 lambda y: c.node("QLinearGlobalAveragePool", [*x.triple(), y[1], y[2]], MS, channels_last=0), TIE)


def reduce_mean(c, x):
    axes = c.one_of((2, 3), (1,), (3,), (1, 3))
    return means(c, x, axes, lambda name: c.node("ReduceMean", [name], axes=axes, keepdims=1), None)


def global_max(c, x):
    def computed(v, loose):
        r = v.reals()
        return Reals(r.low.max((2, 3), keepdims=True), r.high.max((2, 3), keepdims=True), float_error(c, r.size().max()))
    return Step(computed, lambda name: c.node("GlobalMaxPool", [name]), keeps=True)


# --- Two values.

def other_operand(c, x):
    shape = c.one_of(x.shape, x.shape, (1, x.shape[1], 1, 1), (1, 1, 1, x.shape[3]), (1, 1, 1, 1))
    return c.operand(shape, given=c.chance(0.6)) if c.chance(0.85) else x


def add(c, x):
    other = other_operand(c, x)

    def computed(v, loose):
        a, b = v.reals(), (v if other is x else other.strict).reals()
        size = (np.abs(v.by.zero) + 256) * np.float64(v.by.scale) + (np.abs(other.by.zero) + 256) * np.float64(other.by.scale)
        return Reals(a.low + b.low, a.high + b.high, 0.0 if c.dyadic else 8 * ULP * size)
    return Step(computed, lambda a, b: c.node("Add", [a, b]), [other],
                lambda y: c.node("QLinearAdd", [*x.triple(), *other.triple(), y[1], y[2]], MS), TIE, relu=True)


def mul(c, x):
    other = other_operand(c, x)

    def computed(v, loose):
        a, b = v.reals(), (v if other is x else other.strict).reals()
        corners = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
        r = Reals(np.minimum.reduce(corners), np.maximum.reduce(corners))
        r.error = 0.0 if c.dyadic else 8 * ULP * r.size()
        return r
    return Step(computed, lambda a, b: c.node("Mul", [a, b]), [other],
                lambda y: c.node("QLinearMul", [*x.triple(), *other.triple(), y[1], y[2]], MS), TIE)


def concat(c, x):
    axis = c.one_of(1, 1, 1, 2, 3)
    shape = list(x.shape)
    shape[axis] = c.one_of(1, 3, 4, 8)
    other = c.operand(tuple(shape), x.by if c.chance(0.5) else None)
    first = c.chance(0.5)

    def computed(v, loose):
        a, b = v.reals(), other.strict.reals()
        pairs = [(p, q) if first else (q, p) for p, q in ((a.low, b.low), (a.high, b.high))]
        low, high = (np.concatenate(pair, axis) for pair in pairs)
        return Reals(low, high, 0.0 if c.dyadic else 8 * ULP * np.maximum(np.abs(low), np.abs(high)))

    def in_order(a, b):
        return [a, b] if first else [b, a]
    return Step(computed, lambda a, b: c.node("Concat", in_order(a, b), axis=axis), [other],
                lambda y: c.node("QLinearConcat", [y[1], y[2], *sum(in_order(x.triple(), other.triple()), [])], MS, axis=axis), TIE, keeps=True)


# --- Movement.

def moved(c, x, move, node, integers=True):
    """node: of a tensor's name, of floats or, where they may be, integers."""
    def computed(v, loose):
        r = v.reals()
        return Reals(move(r.low), move(r.high), float_error(c, r.size().max()))
    return Step(computed, node, keeps=True, moves=integers)


def resize(c, x):
    if c.chance(0.6):
        f = c.one_of((2, 2), (1, 2), (3, 2)) if np.prod(x.shape) < LARGEST else (1, 1)
        scales = c.constant(np.array([1, 1, *f], np.float32))
        return moved(c, x, lambda a: a.repeat(f[0], 2).repeat(f[1], 3),
                     lambda name: c.node("Resize", [name, "", scales], mode="nearest", coordinate_transformation_mode="asymmetric",
                                         nearest_mode="floor"))
    scales = c.constant(np.array([1, 1, 2, 2], np.float32))
    rows, columns = (exact.linear_rows(n, 2) for n in x.shape[2:])

    def computed(v, loose):
        r = v.reals()
        low, high = (np.einsum("nchw,ph,qw->ncpq", a, rows, columns, optimize=True) for a in (r.low, r.high))
        return Reals(low, high, 0.0 if c.dyadic else 32 * ULP * r.size().max())
    return Step(computed, lambda name: c.node("Resize", [name, "", scales], mode="linear", coordinate_transformation_mode="half_pixel"))


def pad(c, x):
    mode = c.one_of("constant", "constant", "reflect", "edge")
    most = 1 if min(x.shape[2:]) > 1 or mode != "reflect" else 0
    top, left, bottom, right = (int(c.rng.integers(0, most + 1)) for _ in range(4))
    amounts = c.constant(np.array([0, 0, top, left, 0, 0, bottom, right], np.int64))
    value = c.one_of(0.0, 0.0, 1.0) if mode == "constant" else 0.0
    more = {"constant_values": value} if mode == "constant" else {}
    given = [c.constant(np.float32(value))] if mode == "constant" and (value or c.chance(0.5)) else []
    return moved(c, x, lambda a: np.pad(a, ((0, 0), (0, 0), (top, bottom), (left, right)), mode, **more),
                 lambda name: c.node("Pad", [name, amounts, *given], mode=mode), mode != "constant")


def reshape(c, x):
    n, channels, height, width = x.shape
    shape = c.one_of((n, height, channels, width), (n, channels, height * width, 1), (n, channels * height, 1, width), (n, width, height, channels))
    name_of_shape = c.constant(np.array(shape, np.int64))
    return moved(c, x, lambda a: a.reshape(shape), lambda name: c.node("Reshape", [name, name_of_shape]))


def transpose(c, x):
    order = c.one_of((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (0, 2, 1, 3))
    return moved(c, x, lambda a: a.transpose(order), lambda name: c.node("Transpose", [name], perm=order))


# --- Functions of one element.

def clamp(c, x, low, high, node):
    def computed(v, loose):
        r = v.reals()
        return Reals(np.clip(r.low, low, high), np.clip(r.high, low, high), float_error(c, r.size().max()))
    return Step(computed, node, keeps=True)


def relu(c, x):
    return clamp(c, x, 0.0, np.inf, lambda name: c.node("Relu", [name]))


def clip(c, x):
    low, high = c.one_of((0.0, 6.0), (0.0, 1.0), (-1.0, 1.0), (-0.3, 0.7))
    if (low, high) == (-0.3, 0.7):
        low, high = float(np.float32(low)), float(np.float32(high))
    step = clamp(c, x, low, high, lambda name: c.node("Clip", [name, c.constant(np.float32(low)), c.constant(np.float32(high))]))
    if low == float(np.float32(-0.3)) and c.dyadic:
        whole = step.exact
        step.exact = lambda v, loose: dataclasses.replace(whole(v, loose), error=8 * ULP)
    return step


def function(c, x, f, node, integers=None, loose_steps=0.0):
    return Step(lambda v, loose: exact.of_each(v, f, TABLE), node, integers=integers, loose_steps=loose_steps)


def sigmoid(c, x):
    return function(c, x, exact.sigmoid, lambda name: c.node("Sigmoid", [name]),
                    lambda y: c.node("QLinearSigmoid", [*x.triple(), y[1], y[2]], MS), 0.01)


def hard_swish(c, x):
    return function(c, x, exact.hard_swish, lambda name: c.node("HardSwish", [name]))


def leaky_relu(c, x):
    alpha = float(np.float32(0.1))
    return function(c, x, lambda v: np.where(v < 0, alpha * v, v), lambda name: c.node("LeakyRelu", [name], alpha=alpha),
                    lambda y: c.node("QLinearLeakyRelu", [*x.triple(), y[1], y[2]], MS, alpha=alpha), TIE)


def softmax(c, x):
    axis = c.one_of(3, 3, 1)

    def computed(v, loose):
        low, high = exact.softmax(v.reals(), axis)
        return Reals(low, high, (2 * TABLE if loose else TABLE) * high)

    def in_integers(y):
        """onnxruntime's has sums of its own, does not saturate, and makes 0 of the softmax of one element."""
        saturates = 1 / np.float64(y[0].scale) + y[0].zero > y[0].limits[1]
        return None if axis != 3 or saturates or x.shape[3] == 1 else c.node("QLinearSoftmax", [*x.triple(), y[1], y[2]], MS, axis=3, opset=13)
    return Step(computed, lambda name: c.node("Softmax", [name], axis=axis), [], in_integers, 1.0)


OPERATORS = {
    "conv": conv, "depthwise": depthwise, "transposed": transposed, "matmul": matmul, "matmul of two": matmul_of_two, "gemm": gemm,
    "max pool": max_pool, "average pool": average_pool, "global average": global_average, "global max": global_max, "mean": reduce_mean,
    "add": add, "mul": mul, "concat": concat, "resize": resize, "pad": pad, "reshape": reshape, "transpose": transpose, "relu": relu,
    "clip": clip, "sigmoid": sigmoid, "hard swish": hard_swish, "leaky relu": leaky_relu, "softmax": softmax, "conv of one axis": conv_of_one_axis,
}
