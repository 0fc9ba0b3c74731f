"""An ONNX file as a module of PyTorch, which torch.compile traces as it does any other: the operators that the known networks have. Shapes and constants are
folded by onnxruntime first, so that what is left are layers."""
import tempfile

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper


def folded(path):
    import onnxruntime
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath, options.log_severity_level = file.name, 3
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return onnx.load(file.name)


def halves(pads):
    """ONNX's begins and ends, which must be the same here."""
    n = len(pads) // 2
    if list(pads[:n]) != list(pads[n:]):
        raise NotImplementedError(f"pads {pads} that differ at begin and end")
    return tuple(pads[:n])


def conv(x, w, b=None, *, strides=None, pads=None, dilations=None, group=1, auto_pad="NOTSET", kernel_shape=None):
    n = w.dim() - 2
    run = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return run(x, w, b, tuple(strides or [1] * n), halves(pads or [0] * 2 * n), tuple(dilations or [1] * n), group)


def conv_transpose(x, w, b=None, *, strides=None, pads=None, dilations=None, group=1, output_padding=None, kernel_shape=None, auto_pad="NOTSET"):
    n = w.dim() - 2
    return F.conv_transpose2d(x, w, b, tuple(strides or [1] * n), halves(pads or [0] * 2 * n), tuple(output_padding or [0] * n), group, tuple(dilations or [1] * n))


def max_pool(x, *, kernel_shape, strides=None, pads=None, ceil_mode=0, dilations=None, auto_pad="NOTSET", storage_order=0):
    n = len(kernel_shape)
    return F.max_pool2d(x, tuple(kernel_shape), tuple(strides or [1] * n), halves(pads or [0] * 2 * n), ceil_mode=bool(ceil_mode))


def average_pool(x, *, kernel_shape, strides=None, pads=None, ceil_mode=0, count_include_pad=0, auto_pad="NOTSET"):
    n = len(kernel_shape)
    return F.avg_pool2d(x, tuple(kernel_shape), tuple(strides or [1] * n), halves(pads or [0] * 2 * n), bool(ceil_mode), bool(count_include_pad))


def gemm(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):
    y = (a.t() if transA else a) @ (b.t() if transB else b)
    y = y if alpha == 1 else alpha * y
    return y if c is None else y + (c if beta == 1 else beta * c)


def batch_norm(x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, training_mode=0):
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)


def layer_norm(x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    return F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)


def slices(x, starts, ends, axes=None, steps=None):
    where = [slice(None)] * x.dim()
    for start, end, axis, step in zip(starts, ends, axes or range(len(starts)), steps or [1] * len(starts)):
        where[axis] = slice(start, min(end, x.shape[axis]), step)
    return x[tuple(where)]


def reshape(x, shape, *, allowzero=0):
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape)])


def gather(x, indices, *, axis=0):
    if not isinstance(indices, torch.Tensor):
        return x.select(axis, int(indices)) if np.ndim(indices) == 0 else torch.index_select(x, axis, torch.tensor(indices, device=x.device))
    picked = torch.index_select(x, axis, indices.reshape(-1))
    return picked.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])


def lstm(x, w, r, b=None, lengths=None, h=None, c=None, *, hidden_size, direction="forward", **_):
    if direction != "forward":
        raise NotImplementedError(f"an LSTM that runs {direction}")
    order = torch.cat([torch.arange(k * hidden_size, (k + 1) * hidden_size, device=x.device) for k in (0, 2, 3, 1)])   # ONNX: i o f c
    weights = [w[0][order], r[0][order]]
    if b is not None:
        half = b.shape[1] // 2
        weights += [b[0][:half][order], b[0][half:][order]]
    zeros = x.new_zeros(1, x.shape[1], hidden_size)
    y, hidden, cell = torch._VF.lstm(x, (zeros if h is None else h, zeros if c is None else c), weights, b is not None, 1, 0.0, False, False, False)
    return y.unsqueeze(1), hidden, cell


def mean(x, axes=None, *, keepdims=1, **attributes):
    return x.mean(tuple(attributes.get("axes") or axes), bool(keepdims))


OPERATORS = {
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "AveragePool": average_pool, "Gemm": gemm, "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm, "Slice": slices, "Reshape": reshape, "Gather": gather, "LSTM": lstm, "ReduceMean": mean,
    "GlobalAveragePool": lambda x: x.mean(tuple(range(2, x.dim())), True), "MatMul": torch.matmul, "Relu": F.relu, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid,
    "Erf": torch.erf, "Sqrt": torch.sqrt, "Exp": torch.exp, "Neg": torch.neg, "Identity": lambda x: x, "Dropout": lambda x, *_: x,
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b, "Pow": lambda a, b: a ** b,
    "Equal": lambda a, b: a == b, "Where": torch.where, "Clip": lambda x, low=None, high=None: torch.clamp(x, low, high),
    "Softmax": lambda x, *, axis=-1: torch.softmax(x, axis), "Flatten": lambda x, *, axis=1: x.flatten(axis) if axis == 1 else x.reshape(int(np.prod(x.shape[:axis])), -1),
    "Transpose": lambda x, *, perm: x.permute(tuple(perm)), "Concat": lambda *parts, axis: torch.cat(parts, axis),
    "Unsqueeze": lambda x, axes: unsqueezed(x, axes), "Squeeze": lambda x, axes=None: x.squeeze() if axes is None else x.squeeze(tuple(axes)),
    "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(shape))),
}
# Inputs that are sizes and axes and not tensors
PLAIN = {"Slice": (1, 2, 3, 4), "Reshape": (1,), "Unsqueeze": (1,), "Squeeze": (1,), "Expand": (1,), "ReduceMean": (1,), "Clip": (1, 2)}


def unsqueezed(x, axes):
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


class TorchGraph(torch.nn.Module):
    """Of the f32 file; .half() makes f16 of it."""

    def __init__(self, path):
        super().__init__()
        model = folded(path)
        graph = model.graph
        self.names, self.plain, self.nodes = {}, {}, list(graph.node)
        unknown = sorted({node.op_type for node in graph.node} - OPERATORS.keys() - {"Cast"})
        if unknown:
            raise NotImplementedError("operators " + ", ".join(unknown))
        for i, tensor in enumerate(graph.initializer):
            array = numpy_helper.to_array(tensor).copy()
            self.names[tensor.name], self.plain[tensor.name] = f"w{i}", array.tolist() if array.size < 64 else None
            self.register_buffer(f"w{i}", torch.from_numpy(array))
        self.inputs = [value.name for value in graph.input if value.name not in self.names]
        self.outputs = [value.name for value in graph.output]
        self.attributes = [{a.name: self.attribute(a) for a in node.attribute} for node in graph.node]

    @staticmethod
    def attribute(a):
        value = helper.get_attribute_value(a)
        return value.decode() if isinstance(value, bytes) else value

    def cast(self, x, to):
        if to in (TensorProto.FLOAT, TensorProto.FLOAT16):
            floats = [buffer.dtype for buffer in self.buffers() if buffer.is_floating_point()]
            return x.to(floats[0] if floats else torch.float32)
        return x.to({TensorProto.INT64: torch.int64, TensorProto.INT32: torch.int32, TensorProto.BOOL: torch.bool}[to])

    def forward(self, *inputs):
        values = dict(zip(self.inputs, inputs))
        for node, attributes in zip(self.nodes, self.attributes):
            plain = PLAIN.get(node.op_type, ())
            arguments = [None if not name else self.plain[name] if i in plain else values[name] if name in values else getattr(self, self.names[name])
                         for i, name in enumerate(node.input)]
            made = self.cast(arguments[0], attributes["to"]) if node.op_type == "Cast" else OPERATORS[node.op_type](*arguments, **attributes)
            values.update(zip(node.output, made if isinstance(made, tuple) else (made,)))
        return [values[name] for name in self.outputs]
