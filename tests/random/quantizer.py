"""From a graph of floats what exporters make of it: QuantizeLinear and DequantizeLinear round operators, with scales from the ranges
that the values have, or QLinear operators."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graph import reads

PRODUCTS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1, "Gemm": 1}   # the axis of the weights' output channels
MOVES = {"Reshape", "Transpose", "MaxPool", "Slice", "Gather", "Flatten", "Squeeze", "Unsqueeze", "Split", "Expand", "Pad"}
MS = "com.microsoft"


class Quantizer:
    """ranges: least and greatest element of each value of floats."""
    def __init__(self, model, ranges, rng):
        self.model, self.ranges, self.rng = model, ranges, rng
        self.kind = [np.uint8, np.int8][rng.integers(2)]
        self.symmetric, self.by_channel = rng.random() < 0.3, rng.random() < 0.6
        self.weights = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
        self.nodes, self.made, self.parameters, self.read_as = [], 0, {}, {}

    def constant(self, value, name=None):
        self.made += 1
        name = name or f"q{self.made}"
        self.weights[name] = np.asarray(value)
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], f"{output}_{op}", **attributes))
        return output

    def chosen(self, value):
        """Names of a scale and a zero point for a value's range, which is now and then too small, or whose step is a power of two."""
        kind = self.kind if self.rng.random() < 0.9 else [np.uint8, np.int8][self.rng.integers(2)]
        low, high = self.ranges[value]
        low, high = min(0.0, low), max(0.0, high)
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        if self.symmetric:
            scale, zero = max(-low, high) / 127, (least + most + 1) // 2
        else:
            scale = (high - low) / 255
            zero = round(np.clip(least - low / scale, least, most)) if scale > 0 else 0
        scale = scale or 1 / 255
        odd = self.rng.random()
        scale = scale * 0.6 if odd < 0.1 else 2.0 ** round(np.log2(scale)) if odd < 0.25 else scale
        return self.constant(np.float32(scale)), self.constant(np.asarray(zero, kind))

    def rounded(self, value, parameters=None):
        """Its name behind the pair. The bytes are `VALUE_q`."""
        self.parameters[value] = parameters or self.chosen(value)
        self.node("QuantizeLinear", [value, *self.parameters[value]], f"{value}_q")
        self.read_as[value] = self.node("DequantizeLinear", [f"{value}_q", *self.parameters[value]], f"{value}_dq")

    def read(self, value):
        """What a node reads instead: at times each reader has a DequantizeLinear of its own, as some exporters write it."""
        if value not in self.read_as or self.rng.random() < 0.7:
            return self.read_as.get(value, value)
        self.made += 1
        return self.node("DequantizeLinear", [f"{value}_q", *self.parameters[value]], f"{value}_dq{self.made}")

    def weight(self, node, name):
        """Bytes of a product's weights, or of another constant operand, and their DequantizeLinear."""
        value, axis = self.weights[name], PRODUCTS.get(node.op_type)
        kind, grouped = (np.int8 if self.rng.random() < 0.85 else np.uint8), any(a.name == "group" and a.i > 1 for a in node.attribute)
        transposed = any(a.name == "transB" and a.i for a in node.attribute)
        axis = 0 if node.op_type == "Gemm" and transposed else axis
        by_channel = self.by_channel and axis is not None and value.ndim > 1 and not (node.op_type == "ConvTranspose" and grouped)
        axis = axis % value.ndim if by_channel else None
        others = tuple(i for i in range(value.ndim) if i != axis)
        low, high = (np.minimum(value.min(others, initial=0), 0), np.maximum(value.max(others, initial=0), 0))
        if kind == np.int8:
            scale, zero = np.maximum(-low, high) / 127, np.zeros_like(low)
        else:
            scale = (high - low) / 255
            zero = np.round(-low / np.where(scale > 0, scale, 1))
        scale = np.where(scale > 0, scale, 1).astype(np.float32)
        along = [-1 if i == axis else 1 for i in range(value.ndim)] if by_channel else []
        info = np.iinfo(kind)
        data = np.clip(np.round(value / scale.reshape(along)) + zero.reshape(along), info.min, info.max).astype(kind)
        names = [self.constant(data), self.constant(scale), self.constant(zero.astype(kind))]
        more = {"axis": axis} if by_channel else {}
        return self.node("DequantizeLinear", names, f"{names[0]}_dq", **more), scale

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
            if 2 in constant and node.input[0] in self.parameters and self.rng.random() < 0.85:
                of_x = self.weights[self.parameters[node.input[0]][0]]
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
                shared = node.op_type in MOVES and self.rng.random() < 0.7
                self.rounded(name, self.parameters.get(node.input[0]) if shared else None)
        for i, name in enumerate(outputs):   # bytes, or floats again
            if name in self.read_as:
                outputs[i] = f"{name}_q" if self.rng.random() < 0.5 else self.read_as[name]
        model = rewritten(self.model, live(self.nodes, outputs), [numpy_helper.from_array(v, k) for k, v in self.weights.items()])
        del model.graph.output[:]
        model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
        return model


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
        """What a DequantizeLinear reads, with an axis or none."""
        node = maker.get(name)
        return list(node.input) if node is not None and node.op_type == "DequantizeLinear" else None

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


def qlinear(node, operands, quantize, kinds):
    """The operator that does it in one; None: there is none."""
    to, output, op = list(quantize.input[1:]), quantize.output[0], node.op_type
    if not operands or operands[0] is None or len(operands[0]) < 3:
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
