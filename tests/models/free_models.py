"""Small networks whose sizes are free, of the kinds that users bring: text recognition, detection, classification, segmentation, voice, encoders. What a seed
leaves open (channels, kernels, strides, blocks) is drawn."""
import numpy as np
from onnx import TensorProto
from sizes import Model

FLOAT = TensorProto.FLOAT


class Network(Model):
    """dims: of each free dimension the multiples that it may be, and how many of them at least and at most."""

    def __init__(self, seed):
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.dims, self.features = {}, {}

    def any(self, *values):
        return values[int(self.rng.integers(len(values)))]

    def image(self, channels, height, width):
        return self.known(self.input("x", FLOAT, "batch", channels, height, width), channels)

    def free(self, **dims):
        self.dims.update(dims)

    def known(self, value, channels):
        self.features[value] = channels
        return value

    def conv(self, x, channels, kernel, strides=1, pads=None, group=1, act="Relu", bias=True, dilation=1):
        kernel, rank = list(kernel), len(kernel)
        inputs = self.features[x]
        strides = [strides] * rank if isinstance(strides, int) else list(strides)
        pads = [(k - 1) * dilation // 2 for k in kernel] * 2 if pads is None else pads
        fan = inputs // group * int(np.prod(kernel))
        weight = self.constant(self.rng.standard_normal((channels, inputs // group, *kernel)) * fan ** -0.5, np.float32)
        operands = [x, weight] + ([self.constant(self.rng.standard_normal(channels) * 0.1, np.float32)] if bias else [])
        y = self.add("Conv", *operands, kernel_shape=kernel, strides=strides, pads=pads, group=group, dilations=[dilation] * rank)
        return self.known(self.activate(y, act), channels)

    def activate(self, y, act):
        if act == "Swish":
            return self.add("Mul", y, self.add("Sigmoid", y))
        if act == "HardSwish":
            return self.add("Mul", y, self.add("HardSigmoid", y, alpha=1 / 6, beta=0.5))
        return self.add(act, y) if act else y

    def pool(self, x, kind, kernel, strides, pads=None, **attributes):
        return self.known(self.add(kind, x, kernel_shape=kernel, strides=strides, pads=pads or [0] * 2 * len(kernel), **attributes), self.features[x])

    def separable(self, x, channels, kernel, strides=1, act="HardSwish"):
        x = self.conv(x, self.features[x], kernel, strides, group=self.features[x], act=act)
        return self.conv(x, channels, [1] * len(kernel), act=act)

    def squeeze_excite(self, x):
        channels = self.features[x]
        gate = self.known(self.add("GlobalAveragePool", x), channels)
        gate = self.conv(self.conv(gate, max(4, channels // 4), [1, 1]), channels, [1, 1], act="HardSigmoid")
        return self.known(self.add("Mul", x, gate), channels)

    def residual(self, x, kernel):
        channels = self.features[x]
        y = self.conv(self.conv(x, channels, kernel), channels, kernel, act=None)
        return self.known(self.add("Relu", self.add("Add", x, y)), channels)

    def upsample(self, x, mode="nearest", scale=2.0):
        attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric" if mode == "nearest" else "half_pixel"}
        if mode == "nearest":
            attributes["nearest_mode"] = "floor"
        return self.known(self.add("Resize", x, "", self.constant([1, 1, scale, scale], np.float32), **attributes), self.features[x])

    def resize_as(self, x, other, mode="nearest"):
        sizes = self.add("Concat", self.add("Slice", self.add("Shape", x), self.constant([0]), self.constant([2]), self.constant([0])),
                         self.add("Slice", self.add("Shape", other), self.constant([2]), self.constant([4]), self.constant([0])), axis=0)
        attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if mode == "nearest" else {"coordinate_transformation_mode": "half_pixel"}
        return self.known(self.add("Resize", x, "", "", sizes, mode=mode, **attributes), self.features[x])

    def dense(self, x, outputs):
        y = self.add("Add", self.add("MatMul", x, self.weight(self.features[x], outputs)), self.constant(self.rng.standard_normal(outputs) * 0.1, np.float32))
        return self.known(y, outputs)

    def layer_norm(self, x):
        width = self.features[x]
        return self.known(self.add("LayerNormalization", x, self.weight(width), self.weight(width), axis=-1), width)

    def sequence(self, x, style):
        """[batch, channels, 1, W] or [batch, channels, H, W] as [batch, positions, channels]."""
        channels = self.features[x]
        if style == "squeeze":
            y = self.add("Squeeze", x, self.constant([2]))
        elif style == "flatten":
            y = self.add("Reshape", x, self.constant([0, channels, -1]))
        else:
            y = self.add("Reshape", x, self.list(self.size(x, 0), self.constant(channels), self.constant(-1)))
        return self.known(self.add("Transpose", y, perm=[0, 2, 1]), channels)

    def attention(self, x, heads, style="shape"):
        width = self.features[x]
        deep = width // heads

        def split(y):
            if style == "shape":
                y = self.add("Reshape", y, self.list(self.size(x, 0), self.size(x, 1), self.constant(heads), self.constant(deep)))
            else:
                y = self.add("Reshape", y, self.constant([0, -1, heads, deep]))
            return self.add("Transpose", y, perm=[0, 2, 1, 3])

        q, k, v = (split(self.dense(x, width)) for _ in range(3))
        scores = self.add("MatMul", self.add("Mul", q, self.constant(deep ** -0.5, np.float32)), self.add("Transpose", k, perm=[0, 1, 3, 2]))
        mixed = self.add("Transpose", self.add("MatMul", self.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        merged = self.known(self.add("Reshape", mixed, self.constant([0, -1, width])), width)
        return self.known(self.add("Add", x, self.dense(merged, width)), width)

    def block(self, x, heads, style="shape"):
        width = self.features[x]
        x = self.attention(self.layer_norm(x), heads, style)
        y = self.dense(self.layer_norm(x), 2 * width)
        y = self.known(self.activate(y, self.any("Swish", "Relu")), 2 * width)
        return self.known(self.add("Add", x, self.dense(y, width)), width)

    def lstm(self, x, hidden, direction="bidirectional"):
        """x: [steps, batch, features]."""
        both = 2 if direction == "bidirectional" else 1
        w = self.constant(self.rng.standard_normal((both, 4 * hidden, self.features[x])) * 0.2, np.float32)
        r = self.constant(self.rng.standard_normal((both, 4 * hidden, hidden)) * 0.2, np.float32)
        bias = self.constant(self.rng.standard_normal((both, 8 * hidden)) * 0.1, np.float32)
        y = self.add("LSTM", x, w, r, bias, hidden_size=hidden, direction=direction)
        y = self.add("Reshape", self.add("Transpose", y, perm=[0, 2, 1, 3]), self.constant([0, 0, -1]))
        return self.known(y, both * hidden)

    def done(self, *outputs):
        return self.finish(*outputs)


def recogniser(seed):
    """Convolutions whose pools halve the height alone, a sequence of columns, attention, a softmax over characters."""
    m = Network(seed)
    height = m.any(16, 32)
    m.free(batch=(1, 1, 4), W=(1, 8, 70))
    x = m.conv(m.image(3, height, "W"), m.any(8, 16, 24), [3, 3], 2)
    x = m.separable(x, m.any(16, 32), [3, 3])
    x = m.separable(x, m.any(32, 40, 48), m.any([3, 3], [5, 5]), (2, 1))
    x = m.squeeze_excite(x)
    x = m.separable(x, m.any(32, 64), [3, 3], (2, 1))
    x = m.pool(x, m.any("MaxPool", "AveragePool"), [2, 2], [2, 2])
    left = height // 16
    if left > 1:
        x = m.conv(x, m.features[x], [left, 1], pads=[0] * 4)
    x = m.dense(m.sequence(x, m.any("squeeze", "shape", "flatten")), 32)
    for _ in range(2):
        x = m.block(x, 4, m.any("shape", "zero"))
    return m.done((m.add("Softmax", m.dense(m.layer_norm(x), 37), axis=2), FLOAT, 3)), m.dims


def recogniser_products(seed):
    """The same without attention: products with matrices in a row behind the reshape."""
    m = Network(seed)
    m.free(batch=(1, 1, 3), W=(1, 8, 90))
    x = m.conv(m.image(m.any(1, 3), 8, "W"), 16, [3, 3], (2, m.any(1, 2)))
    x = m.residual(x, [3, 3])
    x = m.pool(x, "MaxPool", [2, 1], [2, 1])
    channels = m.features[x]
    x = m.add("Transpose", x, perm=[0, 3, 1, 2])
    x = m.known(m.add("Reshape", x, m.list(m.size(x, 0), m.size(x, 1), m.constant(2 * channels))), 2 * channels)
    x = m.known(m.add("Relu", m.dense(x, 48)), 48)
    left = m.add("MatMul", m.dense(x, 24), m.add("Transpose", m.dense(x, 24), perm=[0, 2, 1]))
    x = m.known(m.add("MatMul", left, m.layer_norm(x)), 48)
    return m.done((m.add("Softmax", m.dense(x, m.any(11, 37)), axis=-1), FLOAT, 3)), m.dims


def recogniser_lstm(seed):
    m = Network(seed)
    m.free(batch=(1, 1, 4), W=(1, 8, 60))
    x = m.conv(m.image(1, 16, "W"), 16, [3, 3])
    x = m.pool(x, "MaxPool", [2, 2], [2, 2])
    x = m.conv(x, 32, [3, 3])
    x = m.pool(x, "MaxPool", [2, 2], [2, 1], [0, 0, 0, 1])
    x = m.pool(m.conv(x, 32, [3, 3]), "MaxPool", [2, 1], [2, 1])
    x = m.conv(x, 32, [2, 2], pads=[0] * 4)
    x = m.known(m.add("Transpose", m.add("Squeeze", x, m.constant([2])), perm=[2, 0, 1]), 32)
    x = m.lstm(x, m.any(12, 24))
    return m.done((m.add("LogSoftmax", m.dense(x, 29), axis=2), FLOAT, 3)), m.dims


def detector(seed):
    """A pyramid: down by strides, up by nearest neighbours, sums and a concat, a map of scores by transposed convolutions."""
    m = Network(seed)
    m.free(batch=(1, 1, 3), H=(1, 16, 90), W=(1, 16, 90))
    x = m.conv(m.image(3, "H", "W"), 16, [3, 3], 2)
    levels = []
    for channels in (24, 32, 40):
        x = m.separable(x, channels, m.any([3, 3], [5, 5]), 2)
        x = m.squeeze_excite(x) if m.any(0, 1) else x
        levels.append(x)
    sides = [m.conv(level, 24, [1, 1], act=None) for level in levels]
    up1 = m.known(m.add("Add", sides[1], m.resize_as(sides[2], sides[1])), 24)
    up0 = m.known(m.add("Add", sides[0], m.resize_as(up1, sides[0])), 24)
    wide = [m.resize_as(m.conv(level, 8, [3, 3]), up0) for level in (sides[2], up1)] + [m.conv(up0, 8, [3, 3])]
    x = m.known(m.add("Concat", *wide, axis=1), 24)
    x = m.conv(x, 8, [3, 3])
    for outputs in (8, 1):
        weight = m.constant(m.rng.standard_normal((m.features[x], outputs, 2, 2)) * 0.3, np.float32)
        x = m.known(m.add("ConvTranspose", x, weight, kernel_shape=[2, 2], strides=[2, 2]), outputs)
    return m.done((m.add("Sigmoid", x), FLOAT, 4)), m.dims


def classifier(seed):
    m = Network(seed)
    m.free(batch=(1, 1, 5), H=(1, 9, 60), W=(1, 9, 60))
    x = m.conv(m.image(3, "H", "W"), 16, m.any([3, 3], [7, 7]), 2)
    x = m.pool(x, "MaxPool", [3, 3], [2, 2], [1, 1, 1, 1])
    for channels in (24, 40):
        x = m.conv(m.residual(x, [3, 3]), channels, m.any([1, 1], [3, 3]), m.any(1, 2), act="Swish")
    x = m.known(m.add("Flatten", m.add("GlobalAveragePool", x), axis=1), 40)
    return m.done((m.add("Softmax", m.dense(x, m.any(10, 33)), axis=1), FLOAT, 2)), m.dims


def segmenter(seed):
    """An encoder with dilation, a decoder with a skip connection, bilinear to the input's size."""
    m = Network(seed)
    m.free(batch=(1, 1, 2), H=(1, 8, 50), W=(1, 8, 50))
    first = m.conv(m.image(3, "H", "W"), 16, [3, 3], 2)
    x = m.conv(first, 32, [3, 3], 2)
    x = m.conv(x, 32, [3, 3], dilation=2)
    x = m.known(m.add("Concat", m.conv(x, 16, [1, 1]), m.conv(x, 16, [3, 3], dilation=m.any(2, 3)), axis=1), 32)
    if m.any(0, 1):
        weight = m.constant(m.rng.standard_normal((32, 16, 2, 2)) * 0.2, np.float32)
        x = m.known(m.add("ConvTranspose", x, weight, kernel_shape=[2, 2], strides=[2, 2]), 16)
    else:
        x = m.conv(m.upsample(x, m.any("nearest", "linear")), 16, [3, 3])
    x = m.resize_as(x, first)
    x = m.known(m.add("Concat", x, first, axis=1), 32)
    x = m.conv(m.conv(x, 16, [3, 3]), 5, [1, 1], act=None)
    x = m.resize_as(x, "x", "linear")
    return m.done((m.add("Softmax", x, axis=1), FLOAT, 4)), m.dims


def voice(seed):
    """Samples in frames, convolutions along time, a recurrent network, a probability a step."""
    m = Network(seed)
    m.free(batch=(1, 1, 3), samples=(16, 4, 40))
    x = m.input("x", FLOAT, "batch", "samples")
    x = m.known(m.add("Unsqueeze", x, m.constant([1])), 1)
    x = m.conv(x, 34, [16], 8, pads=[4, 4], act="Abs", bias=False)
    x = m.conv(x, 32, [3])
    x = m.conv(x, 24, [3], m.any(1, 2))
    x = m.known(m.add("Transpose", x, perm=[2, 0, 1]), 24)
    x = m.lstm(x, m.any(16, 24), m.any("forward", "bidirectional"))
    x = m.known(m.add("Transpose", m.add("Relu", x), perm=[1, 2, 0]), m.features[x])
    return m.done((m.add("Sigmoid", m.conv(x, 1, [1], act=None)), FLOAT, 3)), m.dims


def conformer(seed):
    """Attention and depthwise convolutions along time, with gates."""
    m = Network(seed)
    m.free(batch=(1, 1, 3), T=(1, 5, 70))
    x = m.known(m.input("x", FLOAT, "batch", 20, "T"), 20)
    x = m.conv(x, 32, [3], m.any(1, 2))
    x = m.block(m.known(m.add("Transpose", x, perm=[0, 2, 1]), 32), 2)
    y = m.known(m.add("Transpose", x, perm=[0, 2, 1]), 32)
    both = m.conv(y, 64, [1], act=None)
    halves = [m.add("Slice", both, m.constant([a]), m.constant([b]), m.constant([1])) for a, b in ((0, 32), (32, 64))]
    y = m.known(m.add("Mul", halves[0], m.add("Sigmoid", halves[1])), 32)
    y = m.conv(m.conv(y, 32, [m.any(5, 7)], group=32, act="Swish"), 32, [1], act=None)
    x = m.known(m.add("Add", x, m.add("Transpose", y, perm=[0, 2, 1])), 32)
    return m.done((m.dense(m.layer_norm(x), 30), FLOAT, 3)), m.dims


def patches(seed):
    """A vision transformer over patches, the mean of whose positions is classified."""
    m = Network(seed)
    m.free(batch=(1, 1, 3), H=(8, 1, 6), W=(8, 1, 6))
    x = m.conv(m.image(3, "H", "W"), 32, [8, 8], 8, pads=[0] * 4, act=None)
    x = m.sequence(x, m.any("shape", "flatten"))
    for _ in range(2):
        x = m.block(x, m.any(2, 4))
    x = m.known(m.add("ReduceMean", m.layer_norm(x), axes=[1], keepdims=0), 32)
    return m.done((m.dense(x, 10), FLOAT, 2)), m.dims


def encoder(seed):
    m = Network(seed)
    m.free(batch=(1, 1, 4), seq=(1, 1, 50))
    x = m.known(m.input("x", FLOAT, "batch", "seq", 24), 24)
    x = m.dense(x, 32)
    for _ in range(2):
        x = m.block(x, m.any(2, 4), m.any("shape", "zero"))
    pooled = m.known(m.add("ReduceMax", x, axes=[1], keepdims=0), 32)
    return m.done((m.layer_norm(x), FLOAT, 3), (m.add("Tanh", m.dense(pooled, 16)), FLOAT, 2)), m.dims


def normed(seed):
    """Instance and group norms between convolutions, reductions over one free axis."""
    m = Network(seed)
    m.free(batch=(1, 1, 3), H=(1, 4, 30), W=(1, 4, 30))
    x = m.conv(m.image(3, "H", "W"), 16, [3, 3], act=None)
    x = m.known(m.add("InstanceNormalization", x, m.weight(16), m.weight(16)), 16)
    x = m.conv(m.known(m.add("Relu", x), 16), 24, [3, 3], m.any(1, 2))
    parts = m.add("Reshape", x, m.constant([0, 4, -1]))
    parts = m.add("InstanceNormalization", parts, m.weight(4), m.weight(4))
    x = m.known(m.add("Reshape", parts, m.add("Shape", x)), 24)
    lines = m.add("ReduceMean", x, axes=[2], keepdims=0)
    places = m.add("Softmax", m.add("Reshape", x, m.constant([0, 0, -1])), axis=2)
    return m.done((lines, FLOAT, 3), (places, FLOAT, 3)), m.dims


def shuffled(seed):
    """Grouped convolutions and a shuffle of channels; windows that overlap."""
    m = Network(seed)
    m.free(batch=(1, 1, 3), H=(1, 7, 40), W=(1, 7, 40))
    x = m.conv(m.image(3, "H", "W"), 16, [3, 3], m.any(1, 2))
    x = m.pool(x, m.any("MaxPool", "AveragePool"), [3, 3], [m.any(1, 2)] * 2, [1, 1, 1, 1])
    x = m.conv(x, 32, [1, 1], group=m.any(2, 4))
    y = m.add("Reshape", x, m.list(m.size(x, 0), m.constant(2), m.constant(16), m.size(x, 2), m.size(x, 3)))
    y = m.add("Reshape", m.add("Transpose", y, perm=[0, 2, 1, 3, 4]), m.add("Shape", x))
    y = m.conv(m.known(y, 32), 32, [3, 3], group=m.any(4, 32), act=None)
    x = m.known(m.add("Concat", x, y, axis=1), 64)
    return m.done((m.conv(x, 20, [1, 1]), FLOAT, 4)), m.dims


FAMILIES = [recogniser, recogniser_products, recogniser_lstm, detector, classifier, segmenter, voice, conformer, patches, encoder, normed, shuffled]
