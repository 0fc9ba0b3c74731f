"""An ONNX file as steps that a table of operators runs: those of torch_graph.py or jax_graph.py. Shapes and constants are folded by onnxruntime first, so that
what is left are layers."""
import tempfile

import onnx
from onnx import helper, numpy_helper

# Inputs that are sizes, axes and limits and not tensors
PLAIN = {"Slice": (1, 2, 3, 4), "Reshape": (1,), "Unsqueeze": (1,), "Squeeze": (1,), "Expand": (1,), "ReduceMean": (1,), "Clip": (1, 2)}
MOST_PLAIN = 64   # elements


def folded(path):
    import onnxruntime
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath, options.log_severity_level = file.name, 3
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return onnx.load(file.name)


def attribute(a):
    value = helper.get_attribute_value(a)
    return value.decode() if isinstance(value, bytes) else value


class Steps:
    """`weights`: arrays by name. Operators get tensors, what PLAIN names as lists and numbers, and attributes by name; of Cast the type is ONNX's `to`."""

    def __init__(self, path, operators):
        graph = folded(path).graph
        unknown = sorted({node.op_type for node in graph.node} - operators.keys())
        if unknown:
            raise NotImplementedError("operators " + ", ".join(unknown))
        self.operators = operators
        self.weights = {tensor.name: numpy_helper.to_array(tensor).copy() for tensor in graph.initializer}
        self.plain = {name: array.tolist() for name, array in self.weights.items() if array.size < MOST_PLAIN}
        self.inputs = [value.name for value in graph.input if value.name not in self.weights]
        self.outputs = [value.name for value in graph.output]
        self.nodes = [(node.op_type, list(node.input), list(node.output), {a.name: attribute(a) for a in node.attribute}) for node in graph.node]

    def run(self, weights, inputs):
        values = {**weights, **dict(zip(self.inputs, inputs))}
        for op, names, outputs, attributes in self.nodes:
            plain = PLAIN.get(op, ())
            arguments = [None if not name else self.plain[name] if i in plain else values[name] for i, name in enumerate(names)]
            made = self.operators[op](*arguments, **attributes)
            values.update(zip(outputs, made if isinstance(made, tuple) else (made,)))
        return [values[name] for name in self.outputs]


def same_pads(pads):
    """ONNX's begins and ends, which must be the same."""
    n = len(pads) // 2
    if list(pads[:n]) != list(pads[n:]):
        raise NotImplementedError(f"pads {pads} that differ at begin and end")
    return tuple(pads[:n])


def sliced(x, starts, ends, axes=None, steps=None):
    where = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes or range(len(starts)), steps or [1] * len(starts)):
        where[axis] = slice(start, min(end, x.shape[axis]), step)
    return x[tuple(where)]


def shape_for(x, shape):
    """Reshape's, with 0 for a size that stays."""
    return [x.shape[i] if d == 0 else d for i, d in enumerate(shape)]
