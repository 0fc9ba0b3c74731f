"""An ONNX file as a module of PyTorch, which torch.compile traces as it does any other: the operators that the known networks have."""
import numpy as np
import torch
import torch.nn.functional as F
from onnx import TensorProto

from gpu.onnx_steps import Steps, same_pads, shape_for, sliced


def conv(x, w, b=None, *, strides=None, pads=None, dilations=None, group=1, auto_pad="NOTSET", kernel_shape=None):
    n = w.dim() - 2
    run = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return run(x, w, b, tuple(strides or [1] * n), same_pads(pads or [0] * 2 * n), tuple(dilations or [1] * n), group)


def conv_transpose(x, w, b=None, *, strides=None, pads=None, dilations=None, group=1, output_padding=None, kernel_shape=None, auto_pad="NOTSET"):
    n = w.dim() - 2
    return F.conv_transpose2d(x, w, b, tuple(strides or [1] * n), same_pads(pads or [0] * 2 * n), tuple(output_padding or [0] * n), group, tuple(dilations or [1] * n))


def max_pool(x, *, kernel_shape, strides=None, pads=None, ceil_mode=0, dilations=None, auto_pad="NOTSET", storage_order=0):
    n = len(kernel_shape)
    return F.max_pool2d(x, tuple(kernel_shape), tuple(strides or [1] * n), same_pads(pads or [0] * 2 * n), ceil_mode=bool(ceil_mode))


def average_pool(x, *, kernel_shape, strides=None, pads=None, ceil_mode=0, count_include_pad=0, auto_pad="NOTSET"):
    n = len(kernel_shape)
    return F.avg_pool2d(x, tuple(kernel_shape), tuple(strides or [1] * n), same_pads(pads or [0] * 2 * n), bool(ceil_mode), bool(count_include_pad))


def gemm(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):
    y = (a.t() if transA else a) @ (b.t() if transB else b)
    y = y if alpha == 1 else alpha * y
    return y if c is None else y + (c if beta == 1 else beta * c)


def batch_norm(x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, training_mode=0):
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)


def layer_norm(x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    return F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)


def gather(x, indices, *, axis=0):
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
    "LayerNormalization": layer_norm, "Slice": sliced, "Reshape": lambda x, shape, *, allowzero=0: x.reshape(shape_for(x, shape)), "Gather": gather, "LSTM": lstm, "ReduceMean": mean,
    "GlobalAveragePool": lambda x: x.mean(tuple(range(2, x.dim())), True), "MatMul": torch.matmul, "Relu": F.relu, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid,
    "Erf": torch.erf, "Sqrt": torch.sqrt, "Exp": torch.exp, "Neg": torch.neg, "Identity": lambda x: x, "Dropout": lambda x, *_: x,
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b, "Pow": lambda a, b: a ** b,
    "Equal": lambda a, b: a == b, "Where": torch.where, "Clip": lambda x, low=None, high=None: torch.clamp(x, low, high),
    "Softmax": lambda x, *, axis=-1: torch.softmax(x, axis), "Flatten": lambda x, *, axis=1: x.flatten(axis) if axis == 1 else x.reshape(int(np.prod(x.shape[:axis])), -1),
    "Transpose": lambda x, *, perm: x.permute(tuple(perm)), "Concat": lambda *parts, axis: torch.cat(parts, axis),
    "Unsqueeze": lambda x, axes: unsqueezed(x, axes), "Squeeze": lambda x, axes=None: x.squeeze() if axes is None else x.squeeze(tuple(axes)),
    "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(shape))),
}

def unsqueezed(x, axes):
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


class TorchGraph(torch.nn.Module):
    """Of the f32 file; .half() makes f16 of it."""

    def __init__(self, path):
        super().__init__()
        self.steps = Steps(path, {**OPERATORS, "Cast": self.cast})
        self.names = {name: f"w{i}" for i, name in enumerate(self.steps.weights)}
        for name, array in self.steps.weights.items():
            self.register_buffer(self.names[name], torch.from_numpy(array))

    def cast(self, x, *, to):
        if to in (TensorProto.FLOAT, TensorProto.FLOAT16):
            floats = [buffer.dtype for buffer in self.buffers() if buffer.is_floating_point()]
            return x.to(floats[0] if floats else torch.float32)
        return x.to({TensorProto.INT64: torch.int64, TensorProto.INT32: torch.int32, TensorProto.BOOL: torch.bool}[to])

    def forward(self, *inputs):
        return self.steps.run({name: getattr(self, own) for name, own in self.names.items()}, inputs)
