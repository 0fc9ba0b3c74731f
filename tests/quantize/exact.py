"""What each QuantizeLinear of a model makes of given bytes, exactly: sums of products in integers, everything else in f64. This is
ONNX's definition in numpy, and nothing of the compiler.

Values have the model's batch of 1 replaced by any number of samples.
"""
import dataclasses

import numpy as np
from onnx import helper, numpy_helper


@dataclasses.dataclass
class Value:
    """numbers * scale; scale: a number, or one for each index of an axis."""
    numbers: np.ndarray   # f64; of quantized values integers, less the zero point
    scale: object = 1.0
    axis: int = 0

    def real(self):
        if np.ndim(self.scale) == 0:
            return self.numbers * self.scale
        shape = [1] * self.numbers.ndim
        shape[self.axis] = -1
        return self.numbers * self.scale.reshape(shape)


class Model:
    """A graph of Q/DQ pairs around float operators."""

    def __init__(self, graph):
        self.graph = graph
        self.constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        self.makers = {output: node for node in graph.node for output in node.output}
        self.quantized = [node.output[0] for node in graph.node if node.op_type == "QuantizeLinear"]

    def attributes(self, node):
        return {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def parameters(self, node):
        """Scale and zero point."""
        scale = self.constants[node.input[1]].astype(np.float64)
        zero = self.constants[node.input[2]] if len(node.input) > 2 and node.input[2] else np.zeros_like(scale, np.uint8)
        return scale.squeeze() if scale.size == 1 else scale, zero

    def type_of(self, name):
        return self.parameters(self.makers[name])[1].dtype

    def expected(self, name, given):
        """Of a QuantizeLinear's output: the bytes. given: the bytes of the other ones, and the model's inputs."""
        node = self.makers[name]
        scale, zero = self.parameters(node)
        limits = np.iinfo(zero.dtype)
        return np.clip(np.rint(self.value(node.input[0], given).real() / scale) + zero.astype(np.float64), limits.min, limits.max)

    def value(self, name, given):
        if name in self.constants:
            return Value(self.constants[name].astype(np.float64))
        if name not in self.makers:
            return Value(given[name].astype(np.float64))
        node = self.makers[name]
        return getattr(self, node.op_type.lower())(node, given)

    def dequantizelinear(self, node, given):
        scale, zero = self.parameters(node)
        source = node.input[0]
        numbers = (self.constants[source] if source in self.constants else given[source]).astype(np.float64)
        axis = self.attributes(node).get("axis", 1) % max(1, numbers.ndim)
        if zero.size > 1:
            zero = zero.reshape([-1 if i == axis else 1 for i in range(numbers.ndim)])
        return Value(numbers - zero.astype(np.float64).reshape(zero.shape if zero.size > 1 else ()), scale, axis)

    def operands(self, node, given):
        return [self.value(name, given) for name in node.input if name]

    def add(self, node, given):
        a, b = self.operands(node, given)
        return Value(a.real() + b.real())

    def relu(self, node, given):
        return Value(np.maximum(self.operands(node, given)[0].real(), 0))

    def transpose(self, node, given):
        x = self.operands(node, given)[0]
        return Value(x.numbers.transpose(self.attributes(node)["perm"]), x.scale)

    def reshape(self, node, given):
        x = self.value(node.input[0], given)
        shape = [int(extent) for extent in self.constants[node.input[1]]]
        return Value(x.numbers.reshape([len(x.numbers), *shape[1:]]), x.scale)

    def averagepool(self, node, given):
        x = self.operands(node, given)[0]
        attributes = self.attributes(node)
        assert not any(attributes.get("pads", [])) and not attributes.get("ceil_mode"), "windows beyond the input"
        window = attributes["kernel_shape"]
        taps = windows(x.numbers, window, attributes.get("strides", [1] * len(window)), [1] * len(window))
        return Value(taps.sum(axis=tuple(range(-len(window), 0))) / np.prod(window), x.scale)

    def conv(self, node, given):
        x, w, *bias = self.operands(node, given)
        a = self.attributes(node)
        rank = x.numbers.ndim - 2
        pads, group = a.get("pads", [0] * 2 * rank), a.get("group", 1)
        padded = np.pad(x.numbers, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
        taps = windows(padded, w.numbers.shape[2:], a.get("strides", [1] * rank), a.get("dilations", [1] * rank))
        inner = [1, *range(2 + rank, 2 + 2 * rank)]   # a group's channels and the taps
        parts = [np.tensordot(part, weights, (inner, list(range(1, 2 + rank))))
                 for part, weights in zip(np.split(taps, group, 1), np.split(w.numbers, group))]
        sums = np.concatenate([np.moveaxis(part, -1, 1) for part in parts], 1)
        return self.product(sums, x, w, bias)

    def gemm(self, node, given):
        x, w, *bias = self.operands(node, given)
        a = self.attributes(node)
        assert a.get("alpha", 1.0) == a.get("beta", 1.0) == 1.0 and not a.get("transA")
        return self.product(x.numbers @ (w.numbers.T if a.get("transB") else w.numbers), x, w, bias)

    @staticmethod
    def product(sums, x, w, bias):
        """Of integers, exactly; the channels are axis 1."""
        assert np.ndim(x.scale) == 0 and np.abs(sums).max(initial=0) < 2 ** 53
        column = [1, -1] + [1] * (sums.ndim - 2)
        real = sums * (x.scale * np.reshape(w.scale, column if np.ndim(w.scale) else ()))
        return Value(real + bias[0].real().reshape(column) if bias else real)


def windows(x, kernel, strides, dilations):
    """[n, c, points.., taps..]"""
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, x.ndim)))
    return view[(slice(None), slice(None), *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]
