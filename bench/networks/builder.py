"""ONNX graphs, layer by layer, in the form in which exporters write them: batch norms folded into convolutions, attention and norms as their operators.
Weights are random, of the spread that keeps activations in range; equal seeds give equal files."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Network:
    """Values are known by name; shapes of those that layers made are in `shape`. `batch` pictures at once where a network takes one."""
    batch = 1

    def __init__(self, name, seed=1):
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs, self.shape = [], [], [], [], {}

    # --- values
    def input(self, name, shape, dtype=TensorProto.FLOAT):
        shape = [self.batch, *shape[1:]] if len(shape) > 2 else shape
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        self.shape[name] = tuple(shape)
        return name

    def output(self, value, name="y"):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        self.shape[name] = array.shape
        return name

    def weights(self, *shape, fan=None):
        fan = fan or int(np.prod(shape[1:]))
        return self.constant((self.random.standard_normal(shape) * math.sqrt(2 / fan)).astype(np.float32))

    def bias(self, n):
        return self.constant((self.random.standard_normal(n) * 0.05).astype(np.float32))

    def op(self, kind, *inputs, shape=None, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        if shape is not None:
            self.shape[names[0]] = tuple(shape)
        elif inputs and inputs[0] in self.shape:
            self.shape[names[0]] = self.shape[inputs[0]]
        return names[0] if outputs == 1 else names

    def save(self, folder):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        path = folder / f"{self.name}.onnx"
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return path

    # --- layers
    def conv(self, x, out, kernel=1, stride=1, pad=None, group=1, act=None, gain=1.0):
        channels, size = self.shape[x][1], self.shape[x][2:]
        rank = len(size)
        kernel, stride = [(v,) * rank if isinstance(v, int) else tuple(v) for v in (kernel, stride)]
        pad = tuple(k // 2 for k in kernel) if pad is None else (pad,) * rank if isinstance(pad, int) else tuple(pad)
        spatial = tuple((s + 2 * p - k) // t + 1 for s, p, k, t in zip(size, pad, kernel, stride))
        fan = channels // group * int(np.prod(kernel))
        w = self.constant((self.random.standard_normal((out, channels // group, *kernel)) * gain * math.sqrt(2 / fan)).astype(np.float32))
        y = self.op("Conv", x, w, self.bias(out), shape=(self.shape[x][0], out, *spatial), kernel_shape=kernel, strides=stride, pads=pad * 2, group=group)
        return self.act(y, act)

    def transposed(self, x, out, kernel=2, stride=2, pad=0, act=None):
        n, channels, *size = self.shape[x]
        y = self.op("ConvTranspose", x, self.weights(channels, out, kernel, kernel, fan=channels * kernel), self.bias(out), kernel_shape=[kernel] * 2,
                    strides=[stride] * 2, pads=[pad] * 4, shape=(n, out, *((s - 1) * stride + kernel - 2 * pad for s in size)))
        return self.act(y, act)

    def act(self, x, kind):
        if kind is None:
            return x
        if kind == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "gelu":
            half = self.op("Mul", x, self.op("Add", self.op("Erf", self.op("Div", x, self.scalar(math.sqrt(2)))), self.scalar(1)))
            return self.op("Mul", half, self.scalar(0.5))
        if kind == "relu6":
            return self.op("Clip", x, self.scalar(0), self.scalar(6))
        return self.op({"relu": "Relu", "hardswish": "HardSwish", "sigmoid": "Sigmoid", "tanh": "Tanh", "leaky": "LeakyRelu"}[kind], x)

    def scalar(self, value):
        return self.constant(np.array(value, np.float32))

    def pool(self, x, kernel, stride, pad=0, kind="MaxPool"):
        n, c, *size = self.shape[x]
        spatial = tuple((s + 2 * pad - kernel) // stride + 1 for s in size)
        rank = len(size)
        extra = {"count_include_pad": 1} if kind == "AveragePool" else {}
        return self.op(kind, x, shape=(n, c, *spatial), kernel_shape=[kernel] * rank, strides=[stride] * rank, pads=[pad] * 2 * rank, **extra)

    def mean(self, x):
        """Over all spatial axes: [n, c, 1, ...]."""
        n, c, *size = self.shape[x]
        return self.op("GlobalAveragePool", x, shape=(n, c, *(1 for _ in size)))

    def add(self, a, b):
        return self.op("Add", a, b)

    def concat(self, *parts, axis=1):
        shape = list(self.shape[parts[0]])
        shape[axis] = sum(self.shape[p][axis] for p in parts)
        return self.op("Concat", *parts, axis=axis, shape=shape)

    def reshape(self, x, *shape):
        total, known = int(np.prod(self.shape[x])), -int(np.prod(shape))
        full = [total // known if s == -1 else s for s in shape]
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)), shape=full)

    def transpose(self, x, *order):
        return self.op("Transpose", x, perm=list(order), shape=[self.shape[x][i] for i in order])

    def slice(self, x, begin, end, axis):
        shape = list(self.shape[x])
        shape[axis] = min(end, shape[axis]) - begin
        return self.op("Slice", x, *(self.constant(np.array([v], np.int64)) for v in (begin, end, axis)), shape=shape)

    def roll(self, x, by, axis):
        """Elements move `by` places towards the end, as torch.roll is exported."""
        n, at = self.shape[x][axis], -by % self.shape[x][axis]
        return self.concat(self.slice(x, at, n, axis), self.slice(x, 0, at, axis), axis=axis)

    def linear(self, x, out, bias=True, act=None):
        shape = self.shape[x]
        y = self.op("MatMul", x, self.constant((self.random.standard_normal((shape[-1], out)) / math.sqrt(shape[-1])).astype(np.float32)), shape=(*shape[:-1], out))
        return self.act(self.op("Add", y, self.bias(out), shape=(*shape[:-1], out)) if bias else y, act)

    def classifier(self, x, out):
        """From [n, c, 1, ...] or [n, c]."""
        x = self.op("Flatten", x, axis=1, shape=(self.shape[x][0], int(np.prod(self.shape[x][1:]))))
        w = self.weights(out, self.shape[x][1], fan=2 * self.shape[x][1])
        return self.op("Gemm", x, w, self.bias(out), transB=1, shape=(self.shape[x][0], out))

    def layer_norm(self, x):
        n = self.shape[x][-1]
        return self.op("LayerNormalization", x, self.constant(1 + self.random.standard_normal(n).astype(np.float32) * 0.1), self.bias(n), axis=-1, epsilon=1e-5)

    def rms_norm(self, x):
        square = self.op("ReduceMean", self.op("Pow", x, self.scalar(2)), axes=[-1], keepdims=1, shape=(*self.shape[x][:-1], 1))
        root = self.op("Sqrt", self.op("Add", square, self.scalar(1e-6)))
        return self.op("Mul", self.op("Div", x, root), self.constant(np.ones(self.shape[x][-1], np.float32)))

    def norm_planes(self, x):
        c = self.shape[x][1]
        return self.op("InstanceNormalization", x, self.constant(np.ones(c, np.float32)), self.bias(c), epsilon=1e-5)

    def squeeze_excite(self, x, middle, act="relu", gate="HardSigmoid"):
        scale = self.conv(self.conv(self.mean(x), middle, act=act), self.shape[x][1])
        return self.op("Mul", x, self.op(gate, scale))

    def heads(self, x, heads, transposed=False):
        """[n, t, d] to [n, heads, t, d / heads], or its transpose for keys."""
        n, t, d = self.shape[x]
        split = self.reshape(x, n, t, heads, d // heads)
        return self.transpose(split, 0, 2, 3, 1) if transposed else self.transpose(split, 0, 2, 1, 3)

    def attention(self, x, heads, keys=None, mask=None, bias=True):
        """Of queries in x to `keys` (x itself if not given). mask: added to the scores."""
        n, t, d = self.shape[x]
        keys = keys or x
        q, k, v = self.linear(x, d, bias), self.linear(keys, d, bias), self.linear(keys, d, bias)
        q, k, v = self.heads(q, heads), self.heads(k, heads, True), self.heads(v, heads)
        scores = self.op("MatMul", q, k, shape=(n, heads, t, self.shape[keys][1]))
        scores = self.op("Div", scores, self.scalar(math.sqrt(d // heads)))
        if mask:
            scores = self.op("Add", scores, mask)
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v, shape=(n, heads, t, d // heads))
        return self.linear(self.reshape(self.transpose(y, 0, 2, 1, 3), n, t, d), d, bias)

    def mlp(self, x, hidden, act="gelu"):
        return self.linear(self.linear(x, hidden, act=act), self.shape[x][-1])
