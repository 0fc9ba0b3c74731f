"""From a graph of floats what exporters make of it: QuantizeLinear and DequantizeLinear round operators, with scales from the ranges
that the values have, or QLinear operators."""
import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graph import reads
from oracle import LEAST_SPAN

PRODUCTS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1, "Gemm": 1}   # the axis of the weights' output channels
SUMMED = {"Conv": 1, "ConvTranspose": 0, "MatMul": -2, "Gemm": 0}   # and of what is summed
BYTES, WORDS, HALF_BYTES = (np.uint8, np.int8), (np.uint16, np.int16), (ml_dtypes.uint4, ml_dtypes.int4)
MOVES = {"Reshape", "Transpose", "MaxPool", "Slice", "Gather", "Flatten", "Squeeze", "Unsqueeze", "Split", "Expand", "Pad"}
MS = "com.microsoft"


class Quantizer:
    """ranges: least and greatest element of each value of floats. shapes: of those whose extents are the same in all runs."""
    def __init__(self, model, ranges, shapes, rng):
        self.model, self.ranges, self.shapes, self.rng = model, ranges, shapes, rng
        self.wide = rng.random() < 0.1
        self.kind = self.drawn_kind()
        self.symmetric, self.by_channel = rng.random() < 0.3, rng.random() < 0.6
        self.weights = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
        self.nodes, self.made, self.parameters, self.read_as = [], 0, {}, {}

    def drawn_kind(self):
        return (WORDS if self.wide and self.rng.random() < 0.7 else BYTES)[self.rng.integers(2)]

    def constant(self, value, name=None):
        self.made += 1
        name = name or f"q{self.made}"
        self.weights[name] = np.asarray(value)
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], f"{output}_{op}", **attributes))
        return output

    def chosen(self, value):
        """Names of a scale and a zero point for a value's range, which is now and then too small, or whose step is a power of two; and
        attributes, where there are more of them, by blocks."""
        kind = self.kind if self.rng.random() < 0.9 else self.drawn_kind()
        low, high = self.ranges[value]
        low, high = min(0.0, low), max(0.0, high)
        if high - low < LEAST_SPAN:   # steps of what should be equal would be roundings of it
            high = LEAST_SPAN
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        if self.symmetric:
            scale, zero = 2 * max(-low, high) / (most - least - 1), (least + most + 1) // 2
        else:
            scale = (high - low) / (most - least)
            zero = round(np.clip(least - low / scale, least, most))
        odd = self.rng.random()
        scale = scale * 0.6 if odd < 0.1 else 2.0 ** round(np.log2(scale)) if odd < 0.25 else scale
        shape = self.shapes.get(value)
        if not shape or 0 in shape or self.rng.random() > 0.04:
            return self.constant(np.float32(scale)), self.constant(np.asarray(zero, kind)), {}
        axis = int(self.rng.integers(len(shape)))
        block = 1 + int(self.rng.integers(shape[axis]))
        shape = tuple(-(-d // block) if i == axis else d for i, d in enumerate(shape))
        scales = (scale * self.rng.uniform(0.7, 1.5, shape)).astype(np.float32)
        return self.constant(scales), self.constant(np.full(shape, zero, kind)), {"axis": axis, "block_size": block}

    def rounded(self, value, parameters=None):
        """Its name behind the pair. The bytes are `VALUE_q`."""
        self.parameters[value] = *names, attributes = parameters or self.chosen(value)
        self.node("QuantizeLinear", [value, *names], f"{value}_q", **attributes)
        self.read_as[value] = self.node("DequantizeLinear", [f"{value}_q", *names], f"{value}_dq", **attributes)

    def read(self, value):
        """What a node reads instead: at times each reader has a DequantizeLinear of its own, as some exporters write it."""
        if value not in self.read_as or self.rng.random() < 0.7:
            return self.read_as.get(value, value)
        self.made += 1
        *names, attributes = self.parameters[value]
        return self.node("DequantizeLinear", [f"{value}_q", *names], f"{value}_dq{self.made}", **attributes)

    def weight(self, node, name):
        """Integers of a product's weights, or of another constant operand, and their DequantizeLinear."""
        value, axis = self.weights[name], PRODUCTS.get(node.op_type)
        grouped = any(a.name == "group" and a.i > 1 for a in node.attribute)
        kinds = HALF_BYTES if self.rng.random() < 0.08 else WORDS if self.wide and self.rng.random() < 0.4 else BYTES
        kind = kinds[int(self.rng.random() < 0.85)]
        transposed = any(a.name == "transB" and a.i for a in node.attribute)
        if node.op_type in PRODUCTS and value.ndim > 1 and self.rng.random() < 0.06:
            return self.blocks(value, kind, 1 if node.op_type == "Gemm" and transposed else SUMMED[node.op_type] % value.ndim), None
        axis = 0 if node.op_type == "Gemm" and transposed else axis
        by_channel = self.by_channel and axis is not None and value.ndim > 1 and not (node.op_type == "ConvTranspose" and grouped)
        axis = axis % value.ndim if by_channel else None
        others = tuple(i for i in range(value.ndim) if i != axis)
        scale, zero = steps(value.min(others, initial=0), value.max(others, initial=0), kind)
        along = [-1 if i == axis else 1 for i in range(value.ndim)] if by_channel else []
        more = {"axis": axis} if by_channel else {}
        return self.dequantized(value, scale, zero, kind, scale.reshape(along), zero.reshape(along), more), scale

    def dequantized(self, value, scale, zero, kind, scales, zeros, attributes):
        """scales, zeros: by element."""
        info = ml_dtypes.iinfo(kind)
        data = np.clip(np.round(value / scales) + zeros, info.min, info.max).astype(kind)
        names = [self.constant(data), self.constant(scale), self.constant(zero.astype(kind))]
        return self.node("DequantizeLinear", names, f"{names[0]}_dq", **attributes)

    def blocks(self, value, kind, axis):
        """With a scale for some elements in a row of what is summed, as large language models have."""
        extent = value.shape[axis]
        block = 1 + int(self.rng.integers(extent))
        ends = [np.stack([part(value.take(range(b, min(b + block, extent)), axis), axis) for b in range(0, extent, block)], axis)
                for part in (np.min, np.max)]
        scale, zero = steps(*ends, kind)
        each = [np.repeat(v, block, axis).take(range(extent), axis) for v in (scale, zero)]
        return self.dequantized(value, scale, zero, kind, *each, {"axis": axis, "block_size": block})

    def bias(self, name, scales):
        """As i32, with the product of both scales."""
        value, scale = self.weights[name], np.asarray(scales, np.float32)
        data = np.clip(np.round(value / scale), -2 ** 31, 2 ** 31 - 1).astype(np.int32)
        names = [self.constant(data), self.constant(scale)]
        more = {"axis": 0} if scale.ndim else {}
        return self.node("DequantizeLinear", names, f"{names[0]}_dq", **more)

    def operands(self, node):
        inputs = [self.read(i) for i in node.input]
        constant = [i for i, name in enumerate(node.input) if name in self.weights and self.weights[name].dtype == np.float32 and self.weights[name].size]
        if node.op_type in PRODUCTS and 1 in constant and self.rng.random() < 0.93:
            inputs[1], scale = self.weight(node, node.input[1])
            of_x = self.weights[self.parameters[node.input[0]][0]] if node.input[0] in self.parameters else None
            if 2 in constant and scale is not None and of_x is not None and not of_x.ndim and self.rng.random() < 0.85:
                inputs[2] = self.bias(node.input[2], of_x * scale * (np.float32(0.5) if node.op_type == "Gemm" else np.float32(1)))
        elif node.op_type in ("Add", "Sub", "Mul", "Concat") and self.rng.random() < 0.7:
            for i in constant:
                inputs[i] = self.weight(node, node.input[i])[0]
        return inputs

    def write(self):
        """The model in QDQ form. Values whose range is not known stay as they are."""
        graph = self.model.graph
        outputs = [o.name for o in graph.output]
        for name in (i.name for i in graph.input):
            if name in self.ranges:
                self.rounded(name)
        for index, node in enumerate(graph.node):
            inputs = self.operands(node)
            self.nodes.append(helper.make_node(node.op_type, inputs, node.output, node.name, domain=node.domain))
            self.nodes[-1].attribute.extend(node.attribute)
            behind = {n.op_type for n in graph.node[index + 1:] if node.output[0] in n.input}
            joined = node.op_type in PRODUCTS and behind <= {"Relu", "Clip"} and behind   # one integer product with its Relu
            for name in node.output:
                if name not in self.ranges or self.rng.random() < (0.9 if joined else 0.1):
                    continue
                before = self.parameters.get(node.input[0])
                shared = node.op_type in MOVES and self.rng.random() < 0.7 and before and not before[2]
                self.rounded(name, before if shared else None)
        for i, name in enumerate(outputs):   # bytes, or floats again
            if name in self.read_as:
                outputs[i] = f"{name}_q" if self.rng.random() < 0.5 else self.read_as[name]
        model = rewritten(self.model, live(self.nodes, outputs), [numpy_helper.from_array(v, k) for k, v in self.weights.items()])
        del model.graph.output[:]
        model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
        return model


def steps(low, high, kind):
    """Scales and zero points, as floats."""
    low, high, info = np.minimum(low, 0), np.maximum(high, 0), ml_dtypes.iinfo(kind)
    if info.min:
        scale, zero = np.maximum(-low, high) / info.max, np.zeros_like(low)
    else:
        scale = (high - low) / info.max
        zero = np.round(-low / np.where(scale > 0, scale, 1))
    return np.where(scale > 0, scale, 1).astype(np.float32), zero


def live(nodes, outputs):
    """Those that outputs need."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if set(node.output) & needed:
            kept.insert(0, node)
            needed |= reads(node)
    return kept


def rewritten(model, nodes, weights):
    """The model of these nodes, with the weights that they read."""
    used = {i for node in nodes for i in reads(node)}
    result = type(model)()
    result.CopyFrom(model)
    del result.graph.node[:], result.graph.initializer[:]
    result.graph.node.extend(nodes)
    result.graph.initializer.extend(w for w in weights if w.name in used)
    return result


def to_qlinear(model, rng):
    """The same with QLinear operators, where there are such, for most of the nodes between pairs."""
    graph = model.graph
    maker = {o: node for node in graph.node for o in node.output}
    readers = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    kept = {o.name for o in graph.output}
    kinds = {w.name: w.data_type for w in graph.initializer}
    new, gone = [], set()

    def quantized(name):
        """What a DequantizeLinear of bytes reads, with an axis or none."""
        node = maker.get(name)
        return list(node.input) if node is not None and node.op_type == "DequantizeLinear" and of_bytes(node, kinds) else None

    for node in graph.node:
        behind = readers.get(node.output[0], [])
        alone = len(behind) == 1 and behind[0].op_type == "QuantizeLinear" and node.output[0] not in kept
        operands = [quantized(name) for name in node.input]
        written = qlinear(node, operands, behind[0], kinds) if alone and rng.random() < 0.85 else None
        if written is not None:
            new.append(written)
            gone.add(behind[0].output[0])
        elif node.output[0] not in gone:
            new.append(node)
    return rewritten(model, live(new, kept), graph.initializer)


def of_bytes(node, kinds):
    """Whether a pair's node has bytes, and none by blocks; or a bias."""
    blocks = any(a.name == "block_size" for a in node.attribute)
    return not blocks and (len(node.input) < 3 or kinds.get(node.input[2]) in (TensorProto.UINT8, TensorProto.INT8))


def qlinear(node, operands, quantize, kinds):
    """The operator that does it in one; None: there is none."""
    to, output, op = list(quantize.input[1:]), quantize.output[0], node.op_type
    if not operands or operands[0] is None or len(operands[0]) < 3 or not of_bytes(quantize, kinds):
        return None
    same = all(o is not None and len(o) == 3 and kinds.get(o[2]) == kinds.get(to[1]) for o in operands)
    bias = [operands[2][0]] if len(operands) > 2 and operands[2] else [] if len(operands) < 3 else None
    parts = None
    if op == "Conv" and operands[1] and bias is not None and (not bias or kinds.get(bias[0]) == TensorProto.INT32):
        parts = "QLinearConv", "", [*operands[0], *operands[1], *to, *bias]
    elif op == "MatMul" and operands[1] and len(operands[1]) == 3:
        parts = "QLinearMatMul", "", [*operands[0], *operands[1], *to]
    elif op in ("Add", "Mul") and same:
        parts = f"QLinear{op}", MS, [*operands[0], *operands[1], *to]
    elif op in ("Sigmoid", "LeakyRelu", "GlobalAveragePool") and same:
        parts = f"QLinear{op}", MS, [*operands[0], *to]
    elif op == "AveragePool" and same and not any(a.name == "dilations" for a in node.attribute):
        parts = "QLinearAveragePool", MS, [*operands[0], *to]
    elif op == "Concat" and same:
        parts = "QLinearConcat", MS, [*to, *(name for o in operands for name in o)]
    if parts is None:
        return None
    made = helper.make_node(parts[0], parts[2], [output], node.name, domain=parts[1])
    made.attribute.extend(node.attribute)
    return made
