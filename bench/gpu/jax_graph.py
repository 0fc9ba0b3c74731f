"""An ONNX file as a function of JAX, which XLA compiles whole: the operators that the known networks have."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import TensorProto

from gpu.onnx_steps import Steps, shape_for, sliced


def window(kernel, strides, pads, dilations=None):
    n = len(kernel)
    strides, pads, dilations = (list(given or [usual] * count) for given, usual, count in ((strides, 1, n), (pads, 0, 2 * n), (dilations, 1, n)))
    return strides, list(zip(pads[:n], pads[n:])), dilations


def letters(n):
    """XLA's names of a convolution's dimensions: of the input, the weights, the output."""
    space = "DHW"[3 - n:]
    return "NC" + space, "OI" + space, "NC" + space


def with_bias(y, b):
    return y if b is None else y + b.reshape(1, -1, *[1] * (y.ndim - 2))


def conv(x, w, b=None, *, strides=None, pads=None, dilations=None, group=1, auto_pad="NOTSET", kernel_shape=None):
    strides, pads, dilations = window(w.shape[2:], strides, pads, dilations)
    y = lax.conv_general_dilated(x, w, strides, pads, rhs_dilation=dilations, dimension_numbers=letters(w.ndim - 2), feature_group_count=group)
    return with_bias(y, b)


def conv_transpose(x, w, b=None, *, strides=None, pads=None, dilations=None, group=1, output_padding=None, kernel_shape=None, auto_pad="NOTSET"):
    if group != 1:
        raise NotImplementedError("a transposed convolution in groups")
    n = w.ndim - 2
    strides, pads, dilations = window(w.shape[2:], strides, pads, dilations)
    around = []
    for size, (begin, end), dilation, more in zip(w.shape[2:], pads, dilations, output_padding or [0] * n):
        reach = dilation * (size - 1)
        around.append((reach - begin, reach - end + more))
    turned = jnp.flip(w, tuple(range(2, n + 2))).swapaxes(0, 1)
    y = lax.conv_general_dilated(x, turned, [1] * n, around, lhs_dilation=strides, rhs_dilation=dilations, dimension_numbers=letters(n))
    return with_bias(y, b)


def pooled(x, start, combine, kernel, strides, pads, ceil_mode):
    strides, pads, _ = window(kernel, strides, pads)
    if ceil_mode:
        for i, (size, k, step, (begin, end)) in enumerate(zip(x.shape[2:], kernel, strides, pads)):
            pads[i] = (begin, end + -(size + begin + end - k) % step)
    return lax.reduce_window(x, np.array(start, x.dtype), combine, (1, 1, *kernel), (1, 1, *strides), [(0, 0), (0, 0), *pads])


def max_pool(x, *, kernel_shape, strides=None, pads=None, ceil_mode=0, dilations=None, auto_pad="NOTSET", storage_order=0):
    return pooled(x, -np.inf, lax.max, kernel_shape, strides, pads, ceil_mode)


def average_pool(x, *, kernel_shape, strides=None, pads=None, ceil_mode=0, count_include_pad=0, auto_pad="NOTSET"):
    total = pooled(x, 0, lax.add, kernel_shape, strides, pads, ceil_mode)
    if count_include_pad:
        return total / np.prod(kernel_shape).astype(x.dtype)
    return total / pooled(jnp.ones_like(x), 0, lax.add, kernel_shape, strides, pads, ceil_mode)


def gemm(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):
    y = (a.T if transA else a) @ (b.T if transB else b)
    y = y if alpha == 1 else alpha * y
    return y if c is None else y + (c if beta == 1 else beta * c)


def batch_norm(x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, training_mode=0):
    factor = scale / jnp.sqrt(variance + epsilon)
    return with_bias(x * factor.reshape(1, -1, *[1] * (x.ndim - 2)), bias - mean * factor)


def layer_norm(x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    wide, axes = x.astype(jnp.float32), tuple(range(axis % x.ndim, x.ndim))
    centred = wide - wide.mean(axes, keepdims=True)
    y = (centred * lax.rsqrt((centred * centred).mean(axes, keepdims=True) + epsilon)).astype(x.dtype) * scale
    return y if bias is None else y + bias


def lstm(x, w, r, b=None, lengths=None, h=None, c=None, *, hidden_size, direction="forward", **_):
    if direction != "forward":
        raise NotImplementedError(f"an LSTM that runs {direction}")
    bias = 0 if b is None else b[0][:4 * hidden_size] + b[0][4 * hidden_size:]
    zeros = jnp.zeros((x.shape[1], hidden_size), x.dtype)
    first = (zeros if h is None else h[0], zeros if c is None else c[0])

    def step(state, gates):
        hidden, cell = state
        i, o, f, g = jnp.split(gates + hidden @ r[0].T, 4, axis=-1)   # ONNX: i o f c
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden
    (hidden, cell), y = lax.scan(step, first, x @ w[0].T + bias)
    return y[:, None], hidden[None], cell[None]


def unsqueezed(x, axes):
    return jnp.expand_dims(x, tuple(axes))


def operators_for(floats):
    """floats: the type that every float of the network has."""
    types = {TensorProto.FLOAT: floats, TensorProto.FLOAT16: floats, TensorProto.INT64: jnp.int32, TensorProto.INT32: jnp.int32, TensorProto.BOOL: jnp.bool_}
    return {
        "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "AveragePool": average_pool, "Gemm": gemm, "BatchNormalization": batch_norm,
        "LayerNormalization": layer_norm, "Slice": sliced, "LSTM": lstm, "Unsqueeze": unsqueezed,
        "Cast": lambda x, *, to: x.astype(types[to]),
        "Reshape": lambda x, shape, *, allowzero=0: x.reshape(shape_for(x, shape)),
        "Gather": lambda x, indices, *, axis=0: jnp.take(x, indices, axis=axis),
        "ReduceMean": lambda x, axes=None, *, keepdims=1, **attributes: x.mean(tuple(attributes.get("axes") or axes), keepdims=bool(keepdims)),
        "GlobalAveragePool": lambda x: x.mean(tuple(range(2, x.ndim)), keepdims=True), "MatMul": jnp.matmul, "Relu": jax.nn.relu, "Tanh": jnp.tanh,
        "Sigmoid": jax.nn.sigmoid, "Erf": lax.erf, "Sqrt": jnp.sqrt, "Exp": jnp.exp, "Neg": jnp.negative, "Identity": lambda x: x, "Dropout": lambda x, *_: x,
        "Add": jnp.add, "Sub": jnp.subtract, "Mul": jnp.multiply, "Div": jnp.divide, "Pow": jnp.power, "Equal": jnp.equal, "Where": jnp.where,
        "Clip": lambda x, low=None, high=None: jnp.clip(x, low, high), "Softmax": lambda x, *, axis=-1: jax.nn.softmax(x, axis),
        "Flatten": lambda x, *, axis=1: x.reshape(int(np.prod(x.shape[:axis])), -1), "Transpose": lambda x, *, perm: x.transpose(perm),
        "Concat": lambda *parts, axis: jnp.concatenate(parts, axis), "Squeeze": lambda x, axes=None: jnp.squeeze(x, None if axes is None else tuple(axes)),
        "Expand": lambda x, shape: jnp.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape))),
    }


def function_of(path, half):
    """Of the f32 file, in f16 where `half`: arrays in, arrays out. Weights lie on the device; products of f32 are not rounded to tf32."""
    jax.config.update("jax_default_matmul_precision", "highest")
    floats = jnp.float16 if half else jnp.float32
    steps = Steps(path, operators_for(floats))
    weights = jax.device_put({name: jnp.asarray(w, floats) if np.issubdtype(w.dtype, np.floating) else jnp.asarray(w) for name, w in steps.weights.items()})
    compiled = jax.jit(steps.run)
    return lambda *inputs: [np.asarray(output) for output in compiled(weights, inputs)]
